/*
 * One claim on one epoch. c is its number. What it says of a transaction is tx[t].said, for good.
 *
 * Timers, READY, JOIN, LEAVE and a worker's death are choices without a message: START may list any incarnation
 * for a source partition, a LEAVE without open data may take a partition out at any time, and the transaction
 * may be given up at any time until the commit call is out. That covers every message that could cause it, the
 * late and the repeated ones included. A coordinator that dies, or is paused, is one that does nothing more.
 */

#define KNOWN KNOWN_TO_TABLE(RUN_OF_COORDINATOR(c))

/*
 * on_surveyed, _claim: one more than the table and the service know, or than what the topic showed besides.
 * They are numbered in the order of their claims.
 */
inline claims(e) {
    STEP {
        state[c] == NEW && (c == 0 || state[c - 1] != NEW) && (e == 1 + KNOWN || e == 1 + MAX(CLAIMED, KNOWN)) ->
        epoch[c] = e;
        state[c] = REGISTERING;
        printf("coordinator %d claims epoch %d\n", c, e)
    }
}

/*
 * on_claim, _concerns_us: it reads a higher claim. _answers_pending: its call is answered STALE. Of two equal
 * claims both may be read back as won here, as if the topic had lost the other: the table takes one of a run.
 * Claiming again makes another coordinator.
 */
inline is_fenced() {
    STEP {
        state[c] != NEW && state[c] != FENCED &&
        (CLAIMED > epoch[c] || (state[c] == REGISTERING -> epoch[c] <= KNOWN : STALE(c))) ->
        state[c] = FENCED;
        current[c] = 0;
        found[c] = 0;
        printf("coordinator %d is fenced\n", c)
    }
}

#ifndef ORDERS
#define MAY_BEGIN(c) true
#endif

/* _maybe_begin: on a READY. The id is random; the model numbers them. */
inline begins() {
    STEP {
        state[c] == IDLE && begun < TRANSACTIONS && MAY_BEGIN(c) ->
        current[c] = begun;
        tx[begun].by = c;
        begun++;
        state[c] = BEGINNING;
        printf("coordinator %d calls begin(t%d)\n", c, current[c])
    }
}

#define may_write(w) ((w) == 0 || RUN_OF_INCARNATION((w) - 1) == RUN_OF_COORDINATOR(c))

inline says_writer(p, w) {
    if
    :: w -> printf(" partition %d from %d by worker %d;", p, TX.base[p], w - 1)
    :: else -> printf(" partition %d by nobody;", p)
    fi
}

/* on_begun, _start: a and b are the writers of source partitions 0 and 1: an incarnation + 1, or nobody. */
inline says_start(a, b) {
    STEP {
        state[c] == BEGINNING && TX.phase != NONE && may_write(a) && may_write(b) ->
        TX.writer[0] = a;
        TX.writer[1] = b;
        TX.expected = (a -> BIT(0) : 0) | (b -> BIT(1) : 0);
        TX.said = START;
        state[c] = STARTED;
        printf("coordinator %d says START t%d:", c, current[c]);
        says_writer(0, a);
        says_writer(1, b);
        printf("\n")
    }
}

/* _end: the interval is over, or an END_REQUEST. */
inline says_end() {
    STEP {
        state[c] == STARTED ->
        TX.said = TX.said | END;
        state[c] = ENDED;
#ifdef ORDERS
        TX.order = COMMIT_OF(c);
#endif
        printf("coordinator %d says END t%d\n", c, current[c])
    }
}

/* on_leave_open: source partition p was left without open data, so that nothing of it is owed. */
inline hears_leave(p) {
    STEP {
        state[c] == ENDED && (TX.expected & BIT(p)) && !has_answered(current[c], p) ->
        TX.expected = TX.expected & ~BIT(p);
        printf("coordinator %d hears LEAVE of partition %d, which is not owed any more\n", c, p);
        if
        :: TX.expected == 0 -> state[c] = ABORTING
        :: else -> maybe_commits()
        fi
    }
}

#ifdef BUG_UNLISTED_FILES
#define LISTED(t, i) (tx[t].writer[PARTITION_OF(i)] != 0)
#else
#define LISTED(t, i) (tx[t].writer[PARTITION_OF(i)] == i + 1)
#endif

/* on_write_status: sender listed for an expected partition, range from the committed offset; else refused. */
inline hears_status(i) {
    STEP {
        state[c] == ENDED && TX.status[i] != 0 && !(TX.taken & BIT(i)) &&
        (TX.expected & BIT(PARTITION_OF(i))) && LISTED(current[c], i) ->
        TX.taken = TX.taken | BIT(i);
        printf("coordinator %d takes WRITE_STATUS t%d of worker %d: [%d, %d)\n",
            c, current[c], i, TX.base[PARTITION_OF(i)], TX.status[i] - 1);
        maybe_commits()
    }
}

#ifdef BUG_LATE_STATUS
/* One of an earlier transaction counts for this one. */
inline hears_late_status(i) {
    STEP {
        state[c] == ENDED && current[c] > 0 && tx[current[c] - 1].status[i] != 0 && !(TX.taken & BIT(i)) &&
        (TX.expected & BIT(PARTITION_OF(i))) && LISTED(current[c], i) ->
        TX.taken = TX.taken | BIT(i);
        TX.status[i] = tx[current[c] - 1].status[i];
        TX.from[i] = tx[current[c] - 1].from[i];
        printf("coordinator %d takes WRITE_STATUS t%d of worker %d for t%d\n",
            c, current[c] - 1, i, current[c]);
        maybe_commits()
    }
}
#endif

#ifdef BUG_COUNT_NOT_SET
/* The same again counts once more. */
inline hears_status_again(i) {
    STEP {
        state[c] == ENDED && TX.expected == (BIT(0) | BIT(1)) && (TX.taken & BIT(i)) ->
        printf("coordinator %d takes WRITE_STATUS t%d of worker %d once more\n", c, current[c], i);
        calls_commit()
    }
}
#endif

/* _maybe_commit: the set is covered, and a range is not empty. */
inline maybe_commits() {
    if
    :: owes_nothing(current[c]) ->
        y = 0;
        x = 0;
        do
        :: x < INCARNATIONS ->
            if
            :: answered_by(current[c], x) && TX.status[x] - 1 > TX.base[PARTITION_OF(x)] -> y = 1
            :: else
            fi;
            x++
        :: else -> break
        od;
        x = 0;
        if
        :: y -> calls_commit()
        :: else -> state[c] = ABORTING; printf("coordinator %d has nothing to commit\n", c)
        fi;
        y = 0
    :: else
    fi
}

inline calls_commit() {
    s4_whole(current[c]);
    TX.asked = 1;
    state[c] = COMMITTING;
    printf("coordinator %d calls commit(t%d)\n", c, current[c]);
#ifdef BUG_ACK_BEFORE_COMMIT
    s7_only_of_what_is_durable(current[c]);
    TX.said = TX.said | ACK
#endif
}

/* _abort: a timeout, a LEAVE with open data, a JOIN of another incarnation, a worker's death. */
inline gives_up() {
    STEP {
        state[c] == STARTED || state[c] == ENDED ->
        state[c] = ABORTING;
        printf("coordinator %d gives t%d up\n", c, current[c])
    }
}

/* on_commit_completed, on_found, on_aborted: COMMITTED. The answer may be as late as it likes: it stays true. */
inline learns_committed() {
    STEP {
        (state[c] == COMMITTING || state[c] == RESOLVING || state[c] == ABORTING) && TX.phase == COMPLETED ->
        acknowledges()
    }
}

/* _committed: durable and seen to be: only now is it acknowledged. */
inline acknowledges() {
    s7_only_of_what_is_durable(current[c]);
#ifdef ORDERS
    settles_orders_of_commit();
#endif
    TX.said = TX.said | ACK;
    state[c] = IDLE;
    printf("coordinator %d says ACK t%d\n", c, current[c]);
    current[c] = 0
}

/* on_commit_completed: REFUSED. A refusal stays true, too: none of its reasons goes away. */
inline learns_refused() {
    STEP {
        state[c] == COMMITTING && TX.phase != COMPLETED && !TX.checked && !COMMIT_PASSES(current[c]) ->
        state[c] = ABORTING;
        printf("coordinator %d: the table refuses to commit t%d\n", c, current[c])
    }
}

/* on_commit_completed: UNKNOWN, which may be said of any call, before or after it has arrived. */
inline hears_nothing() {
    STEP {
        state[c] == COMMITTING ->
        printf("coordinator %d does not know what became of its commit of t%d\n", c, current[c]);
#ifdef BUG_UNKNOWN_IS_COMMITTED
        acknowledges()
#else
#ifdef BUG_UNKNOWN_IS_FAILED
        says_abort()
#else
        state[c] = RESOLVING
#endif
#endif
    }
}

/* on_found: ABSENT, which is no proof: the call may arrive yet. The abort, under the table lock, is. */
inline finds_nothing() {
    STEP {
        state[c] == RESOLVING && TX.phase != COMPLETED ->
        printf("coordinator %d does not find t%d in the table\n", c, current[c]);
#ifdef BUG_ABSENT_IS_PROOF
        says_abort()
#else
        state[c] = ABORTING
#endif
    }
}

/* on_aborted: OK. After a refusal it recovers next; here it may in any case. */
inline learns_rolled_back(next) {
    STEP {
        state[c] == ABORTING && TX.phase == ROLLED_BACK ->
#ifdef ORDERS
        settles_or_gives_back();
#endif
        says_abort();
        state[c] = next
    }
}

/* Nobody asks for them any more. */
inline forgets_statuses() {
    TX.taken = 0;
    TX.expected = 0;
#ifdef ORDERS
    TX.order = 0;
    TX.behind = 0;
#endif
    x = 0;
    do
    :: x < INCARNATIONS -> TX.status[x] = 0; TX.from[x] = 0; x++
    :: else -> break
    od;
    x = 0
}

inline says_abort() {
    s7_abort_only_of_what_is_gone(current[c]);
    TX.said = TX.said | ABORT;
    forgets_statuses();
    state[c] = IDLE;
    printf("coordinator %d says ABORT t%d\n", c, current[c]);
    current[c] = 0
}

#define SETTLED(t) (!(found[c] & BIT(t)) || tx[t].phase != INFLIGHT)
#if TRANSACTIONS == 3
#define FOUND_IS_SETTLED (SETTLED(0) && SETTLED(1) && SETTLED(2))
#else
#define FOUND_IS_SETTLED (SETTLED(0) && SETTLED(1))
#endif

/* on_recovered: nothing that it found open is open any more. */
inline learns_recovered() {
    STEP {
        state[c] == RECOVERING && !STALE(c) && FOUND_IS_SETTLED ->
        found[c] = 0;
        state[c] = IDLE;
        recovered[RUN_OF_COORDINATOR(c)] = epoch[c];
        printf("coordinator %d has recovered: the table is at %d, %d\n", c, offsets[0], offsets[1])
    }
}

proctype Coordinator(byte c) {
end:
    do
    :: claims(1)
    :: claims(2)
#if COORDINATORS == 3
    :: claims(3)
#endif
        :: is_fenced()
    :: learns_recovered()
    :: begins()
#ifdef ORDERS
    :: hears_orders()
    :: is_refused()
    :: drains()
#endif
#ifdef ORDERS
    :: says_start(1, 0)
#else
    :: says_start(1, 2)
#endif
#if !defined(EVERYBODY_OWNED) && !defined(ORDERS)
    :: says_start(1, 0)
    :: says_start(0, 2)
#endif
#if INCARNATIONS >= 3
    :: says_start(3, 2)
    :: says_start(3, 0)
#endif
#if INCARNATIONS == 4
    :: says_start(1, 4)
    :: says_start(3, 4)
    :: says_start(0, 4)
#endif
    :: says_end()
    :: hears_leave(0)
    :: hears_leave(1)
    ANY_INCARNATION(:: hears_status)
#ifdef BUG_LATE_STATUS
    ANY_INCARNATION(:: hears_late_status)
#endif
#ifdef BUG_COUNT_NOT_SET
    ANY_INCARNATION(:: hears_status_again)
#endif
    :: gives_up()
    :: learns_committed()
    :: learns_refused()
    :: hears_nothing()
    :: finds_nothing()
    :: learns_rolled_back(IDLE)
        :: learns_rolled_back(LISTING)
    od
}
