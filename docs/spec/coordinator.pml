/*
 * One claim on one epoch. c is its number. What it says of a transaction is tx[t].said, for good.
 *
 * Timers, READY, JOIN, LEAVE and a worker's death are choices without a message: START may list any incarnation
 * for a source partition, a LEAVE without open data may take a partition out at any time, and the transaction
 * may be given up at any time until the commit call is out. That covers every message that could cause it, the
 * late and the repeated ones included. A coordinator that dies, or is paused, is one that does nothing more.
 */

/* The call that it waits for would be answered STALE. */
#define STALE (epoch[c] != registered[RUN_OF_COORDINATOR(c)])

/* on_surveyed, _claim: one more than the table and the service know, or than any claim that it has read. */
inline claims(e, others) {
    d_step {
        state[c] == NEW && e == 1 + others ->
        epoch[c] = e;
        state[c] = REGISTERING;
        printf("coordinator %d claims epoch %d\n", c, e)
    }
}

/* _fence: a higher claim is read, or a call is answered STALE. A new claim would be another coordinator. */
inline is_fenced() {
    d_step {
        state[c] != NEW && state[c] != FENCED && (STALE || somebody_claimed_more(c)) &&
        state[c] != REGISTERING ->
        state[c] = FENCED;
        current[c] = 0;
        found[c] = 0;
        printf("coordinator %d is FENCED\n", c)
    }
}

/* _maybe_begin: on a READY. The id is random; the model numbers them. */
inline begins() {
    d_step {
        state[c] == IDLE && begun < TRANSACTIONS ->
        current[c] = begun;
        tx[begun].by = c;
        begun++;
        state[c] = BEGINNING;
        printf("coordinator %d calls begin(t%d)\n", c, current[c])
    }
}

/* on_begun, _start: a and b are the writers of source partitions 0 and 1: an incarnation + 1, or nobody. */
inline says_start(a, b) {
    d_step {
        state[c] == BEGINNING && TX.phase != NONE && may_write(a, 0) && may_write(b, 1) && (a || b) ->
        TX.writer[0] = a;
        TX.writer[1] = b;
        TX.expected = (a -> BIT(0) : 0) | (b -> BIT(1) : 0);
        TX.said = START;
        state[c] = STARTED;
        printf("coordinator %d says START t%d: partition 0 from %d by %d, partition 1 from %d by %d\n",
            c, current[c], TX.base[0], a - 1, TX.base[1], b - 1)
    }
}

#define may_write(w, p) ((w) == 0 || (PARTITION_OF((w) - 1) == p && RUN_OF_INCARNATION((w) - 1) == RUN_OF_COORDINATOR(c)))

/* _end: the interval is over, or an END_REQUEST. */
inline says_end() {
    d_step {
        state[c] == STARTED ->
        TX.said = TX.said | END;
        state[c] = ENDED;
        printf("coordinator %d says END t%d\n", c, current[c])
    }
}

/* on_leave_open: source partition p was left without open data, so that nothing of it is owed. */
inline hears_leave(p) {
    d_step {
        (state[c] == STARTED || state[c] == ENDED) && (TX.expected & BIT(p)) && !has_answered(current[c], p) ->
        TX.expected = TX.expected & ~BIT(p);
        printf("coordinator %d hears LEAVE of partition %d, which is not owed any more\n", c, p);
        if
        :: TX.expected == 0 -> state[c] = ABORTING
        :: else -> if :: state[c] == ENDED -> maybe_commits() :: else fi
        fi
    }
}

/* on_write_status: sender listed for an expected partition, range from the committed offset; else refused. */
inline hears_status(i) {
    d_step {
        state[c] == ENDED && TX.status[i] != 0 && !(TX.taken & BIT(i)) &&
        (TX.expected & BIT(PARTITION_OF(i))) && LISTED(current[c], i) ->
        TX.taken = TX.taken | BIT(i);
        printf("coordinator %d takes WRITE_STATUS t%d of worker %d: [%d, %d)\n",
            c, current[c], i, TX.base[PARTITION_OF(i)], TX.status[i] - 1);
        maybe_commits()
    }
}

#ifdef BUG_UNLISTED_FILES
#define LISTED(t, i) (tx[t].writer[PARTITION_OF(i)] != 0)
#else
#define LISTED(t, i) (tx[t].writer[PARTITION_OF(i)] == i + 1)
#endif

#ifdef BUG_LATE_STATUS
/* One of an earlier transaction counts for this one. */
inline hears_late_status(i) {
    d_step {
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
    d_step {
        state[c] == ENDED && (TX.taken & BIT(i)) ->
        printf("coordinator %d takes WRITE_STATUS t%d of worker %d once more\n", c, current[c], i);
        calls_commit()
    }
}
#endif

/* Transaction.missing, is_empty: */
#define answered_by(t, i) ((tx[t].taken & BIT(i)) != 0)
#if INCARNATIONS == 4
#define has_answered(t, p) (answered_by(t, p) || answered_by(t, p + 2))
#elif INCARNATIONS == 3
#define has_answered(t, p) (answered_by(t, p) || (p == 0 && answered_by(t, 2)))
#else
#define has_answered(t, p) answered_by(t, p)
#endif
#define owes_nothing(t) ((!(tx[t].expected & BIT(0)) || has_answered(t, 0)) && \
    (!(tx[t].expected & BIT(1)) || has_answered(t, 1)))

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
    d_step {
        state[c] == STARTED || state[c] == ENDED ->
        state[c] = ABORTING;
        printf("coordinator %d gives t%d up\n", c, current[c])
    }
}

/* on_commit_completed, on_found, on_aborted: COMMITTED. The answer may be as late as it likes: it stays true. */
inline learns_committed() {
    d_step {
        (state[c] == COMMITTING || state[c] == RESOLVING || state[c] == ABORTING) && TX.phase == COMPLETED ->
        acknowledges()
    }
}

/* _committed: durable and seen to be: only now is it acknowledged. */
inline acknowledges() {
    s7_only_of_what_is_durable(current[c]);
    TX.said = TX.said | ACK;
    state[c] = IDLE;
    printf("coordinator %d says ACK t%d\n", c, current[c]);
    current[c] = 0
}

/* on_commit_completed: REFUSED. A refusal stays true, too: none of its reasons goes away. */
inline learns_refused() {
    d_step {
        state[c] == COMMITTING && TX.phase != COMPLETED && !TX.checked && !commit_would_pass(current[c]) ->
        state[c] = ABORTING;
        printf("coordinator %d: the table refuses to commit t%d\n", c, current[c])
    }
}

/* on_commit_completed: UNKNOWN, which may be said of any call, before or after it has arrived. */
inline hears_nothing() {
    d_step {
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
    d_step {
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
    d_step {
        state[c] == ABORTING && TX.phase == ROLLED_BACK ->
        says_abort();
        state[c] = next
    }
}

inline says_abort() {
    s7_abort_only_of_what_is_gone(current[c]);
    TX.said = TX.said | ABORT;
    state[c] = IDLE;
    printf("coordinator %d says ABORT t%d\n", c, current[c]);
    current[c] = 0
}

/* on_recovered: nothing that it found open is open any more. */
inline learns_recovered() {
    d_step {
        state[c] == RECOVERING && !STALE && is_settled(0) && is_settled(1) && is_settled(2) ->
        found[c] = 0;
        state[c] = IDLE;
        recovered[RUN_OF_COORDINATOR(c)] = epoch[c];
        printf("coordinator %d has recovered: the table is at %d, %d\n", c, offsets[0], offsets[1])
    }
}

proctype Coordinator(byte c) {
end:
    do
    :: claims(1, known_to_the_table(c))
    :: claims(2, known_to_the_table(c))
    :: claims(2, claimed_by_others(c))
#if COORDINATORS == 3
    :: claims(3, known_to_the_table(c))
    :: claims(3, claimed_by_others(c))
#endif
    :: is_fenced()
    :: learns_recovered()
    :: begins()
#ifdef EVERYBODY_OWNED
#else
    ANY_WRITER_OF_0(0)
    :: says_start(0, 2)
#endif
    :: says_end()
    :: hears_leave(0)
    :: hears_leave(1)
    ANY_INCARNATION(hears_status)
#ifdef BUG_LATE_STATUS
    ANY_INCARNATION(hears_late_status)
#endif
#ifdef BUG_COUNT_NOT_SET
    ANY_INCARNATION(hears_status_again)
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
