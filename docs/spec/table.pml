/*
 * The table service of one driver, r, and the table itself. A call is served when its coordinator waits for it;
 * a commit, once called, whenever it likes, as often as it likes: that is the lost reply and the late success.
 * The service's single thread is not modelled: its calls may interleave but for the table lock.
 */

#define UNLOCKED (locked == 0)
#define SERVES(c, s) (RUN_OF_COORDINATOR(c) == r && state[c] == s)

/* Ledger.is_current, of what the table says now: */
#ifdef BUG_RUNS_NOT_COMPARED
#define CURRENT(c) (!STALE(c) && table_epoch <= epoch[c])
#else
#define CURRENT(c) (!STALE(c) && (table_epoch < epoch[c] || (table_epoch == epoch[c] && table_run == r)))
#endif

/* Ledger.register */
inline registers(c) {
    STEP {
        SERVES(c, REGISTERING) && epoch[c] > KNOWN_TO_TABLE(r) ->
        registered[r] = epoch[c];
        state[c] = LISTING;
        printf("table: epoch %d of coordinator %d is registered\n", epoch[c], c)
    }
}

/* Transactions.recover: what is open now is to be rolled back first. */
inline lists(c) {
    STEP {
        SERVES(c, LISTING) && !STALE(c) ->
        found[c] = 0;
#ifndef BUG_NO_RECOVERY
        x = 0;
        do
        :: x < TRANSACTIONS ->
            if :: tx[x].phase == INFLIGHT -> found[c] = found[c] | BIT(x) :: else fi;
            x++
        :: else -> break
        od;
        x = 0;
#endif
        state[c] = RECOVERING;
        printf("table: recovery of coordinator %d begins\n", c)
    }
}

/* Who has asked for the rollback of t: a recovery that found it, or the abort of its coordinator. */
#define RECOVERS(c, t) (SERVES(c, RECOVERING) && (found[c] & BIT(t)) && !STALE(c))
#define ABORTS(t) (SERVES(tx[t].by, ABORTING) && current[tx[t].by] == t && !STALE(tx[t].by))
#if COORDINATORS == 3
#define UNWANTED(t) (ABORTS(t) || RECOVERS(0, t) || RECOVERS(1, t) || RECOVERS(2, t))
#else
#define UNWANTED(t) (ABORTS(t) || RECOVERS(0, t) || RECOVERS(1, t))
#endif

/* roll_back, first half: requested under the lock, after a reload that proves the instant incomplete. */
inline requests_rollback(t) {
    STEP {
#ifdef BUG_ROLLBACK_WITHOUT_PROOF
        UNWANTED(t) && !tx[t].rollback && UNLOCKED ->
#else
        UNWANTED(t) && !tx[t].rollback && UNLOCKED && tx[t].phase == INFLIGHT ->
#endif
        tx[t].rollback = 1;
        printf("table: rollback of t%d is requested\n", t)
    }
}

/* Second half: carried out after the lock is given back. Hudi asks nothing then, and would take a completed one. */
#ifdef STRICT_ROLLBACK
#define MAY_BE_ROLLED_BACK(t) (tx[t].phase == INFLIGHT)
#else
#define MAY_BE_ROLLED_BACK(t) (tx[t].phase != ROLLED_BACK)
#endif
inline rolls_back(t) {
    STEP {
        UNWANTED(t) && tx[t].rollback && MAY_BE_ROLLED_BACK(t) ->
        s11_not_completed(t);
        tx[t].phase = ROLLED_BACK;
        tx[t].asked = 0; /* it could have no effect any more */
        printf("table: t%d is rolled back\n", t)
    }
}

#ifndef ORDERS
#define REFUSES_TO_BEGIN false
#endif

/* Transactions.begin. Asked again, it gives the same answer. */
inline opens(c) {
    STEP {
        SERVES(c, BEGINNING) && TX.phase == NONE && UNLOCKED && CURRENT(c) && !REFUSES_TO_BEGIN ->
#ifdef ORDERS
        o1_not_while_paused(STANDS_STILL);
        o3_not_after_the_end();
#endif
        TX.phase = INFLIGHT;
        TX.base[0] = offsets[0];
        TX.base[1] = offsets[1];
        printf("table: t%d is open, from %d, %d\n", current[c], offsets[0], offsets[1])
    }
}

/* Ledger.fence, and what else is checked under the lock. */
#ifdef BUG_NO_FENCE
#define FENCE_PASSES(t) true
#else
#ifdef BUG_RUNS_NOT_COMPARED
#define FENCE_PASSES(t) (!STALE(tx[t].by) && table_epoch <= EPOCH_OF(t))
#else
#define FENCE_PASSES(t) (!STALE(tx[t].by) && \
    (table_epoch < EPOCH_OF(t) || (table_epoch == EPOCH_OF(t) && table_run == RUN_OF(t))))
#endif
#endif
#ifdef BUG_OFFSETS_NOT_COMPARED
#define OFFSETS_PASS(t) true
#else
#define OFFSETS_PASS(t) (tx[t].base[0] == offsets[0] && tx[t].base[1] == offsets[1])
#endif
#ifdef BUG_ROLLBACK_IGNORED
#define INSTANT_PASSES(t) (tx[t].phase == INFLIGHT)
#else
#define INSTANT_PASSES(t) (tx[t].phase == INFLIGHT && !tx[t].rollback)
#endif
#ifdef STRICT_COMMIT
#define ALONE_PASSES(t) (tx[1 - t].phase != INFLIGHT) /* no other instant of this pipeline is open */
#else
#define ALONE_PASSES(t) true
#endif
#define COMMIT_PASSES(t) (FENCE_PASSES(t) && INSTANT_PASSES(t) && OFFSETS_PASS(t) && ALONE_PASSES(t))

/* commit: the lock is taken, and everything is checked under it. */
inline checks(t) {
    STEP {
        tx[t].asked && RUN_OF(t) == r && UNLOCKED && COMMIT_PASSES(t) ->
        s6_newest_of_its_run(t);
        locked = t + 1;
        tx[t].checked = 1;
        printf("table: commit of t%d passes the checks under the lock\n", t)
    }
}

#ifdef BUG_RANGE_OFF_BY_ONE
#define LAST(t, i) (tx[t].status[i] - 2)
#else
#define LAST(t, i) (tx[t].status[i] - 1)
#endif

/* commit: files, ranges and offsets become visible together. Completing needs the inflight file. */
inline completes(t) {
    STEP {
        tx[t].checked && RUN_OF(t) == r && tx[t].phase == INFLIGHT ->
        printf("table: t%d is committed\n", t);
        s6_not_after_its_successor(EPOCH_OF(t), r);
#ifdef ORDERS
        o3_not_after_the_end();
#endif
        tx[t].phase = COMPLETED;
        tx[t].asked = 0;
        x = 0;
        do
        :: x < INCARNATIONS ->
            if
            :: answered_by(t, x) ->
                s1_s2_s5(PARTITION_OF(x), tx[t].base[PARTITION_OF(x)], tx[t].status[x] - 1, tx[t].from[x],
                    LAST(t, x));
                offsets[PARTITION_OF(x)] = tx[t].status[x] - 1
            :: else
            fi;
            x++
        :: else -> break
        od;
        x = 0;
        table_epoch = EPOCH_OF(t);
        table_run = r;
        tx[t].checked = 0;
        if :: locked == t + 1 -> locked = 0 :: else fi
    }
}

/*
 * The lock of a holder that died, or that its guardian ended, expires, and its commit is never completed. With
 * HOLDER_SURVIVES it may be: a machine that is frozen as a whole, or storage that hangs, for longer than that.
 */
inline expires() {
    STEP {
        locked != 0 && RUN_OF(locked - 1) == r ->
        printf("table: the lock of t%d's commit expires\n", locked - 1);
#if !defined(HOLDER_SURVIVES) && !defined(BUG_NO_GUARDIAN)
        tx[locked - 1].checked = 0;
#endif
        locked = 0
    }
}

proctype TableService(byte r) {
end:
    do
    ANY_COORDINATOR(:: registers)
    ANY_COORDINATOR(:: lists)
    ANY_COORDINATOR(:: opens)
    ANY_TRANSACTION(:: requests_rollback)
    ANY_TRANSACTION(:: rolls_back)
    ANY_TRANSACTION(:: checks)
    ANY_TRANSACTION(:: completes)
    :: expires()
    od
}
