/*
 * One incarnation of a worker, which owns one source partition. i is its number. A restarted worker is a new
 * incarnation, and nothing ends the old one: dead, it does nothing more; a zombie, it goes on. Consuming is not
 * a step: how far it came is chosen when the files are closed. What it holds begins at held[i].
 */

/*
 * _concerns_us, _is_news: a decision of its own run counts, unless it knows a higher epoch or has gone on to a
 * later transaction. A higher epoch that it hears of otherwise makes it deaf for the lower one, and give up what
 * is open; that is a worker whose next step for the old epoch does not come.
 */
#define OF_OUR_RUN(t) (RUN_OF(t) == RUN_OF_INCARNATION(i))
#ifdef BUG_OLD_CLAIM_OBEYED
#define OBEYED(t) OF_OUR_RUN(t)
#define IS_NEWS(t) (t >= seen[i] || tx[t].by != tx[WORK].by)
#else
#define OBEYED(t) (OF_OUR_RUN(t) && EPOCH_OF(t) >= known[i])
#define IS_NEWS(t) (t >= seen[i])
#endif

/*
 * START decides where it begins, whatever it holds while it waits (_align). So what it holds then makes no
 * difference and is forgotten, but where a bug has it count, or an order.
 */
#if defined(BUG_NO_REWIND) || defined(BUG_START_NOT_COMPARED) || defined(ORDERS)
#define WAITS(i) doing[i] = WAITING
#else
#define WAITS(i) doing[i] = WAITING; held[i] = 0
#endif

#define SAID(t, what) ((tx[t].said & (what)) != 0)
#define WORK (seen[i] - 1)

#ifdef BUG_UNLISTED_FILES
#define WRITES(t) (tx[t].writer[PARTITION_OF(i)] != 0)
#else
#define WRITES(t) (tx[t].writer[PARTITION_OF(i)] == i + 1)
#endif

/* on_start */
inline hears_start(t) {
    STEP {
        SAID(t, START) && OBEYED(t) && IS_NEWS(t) ->
        s6_not_of_a_lower_epoch(i, t);
        settles(t);
        if
        :: WRITES(t) ->
#ifdef ORDERS
            keeps_or_goes_back(tx[t].base[PARTITION_OF(i)]);
#endif
            aligns(t);
            doing[i] = WRITING;
            printf("worker %d hears START t%d and writes from %d\n", i, t, held[i])
        :: else ->
#ifdef ORDERS
            if :: doing[i] == WRITING -> goes_back() :: else fi;
#endif
            WAITS(i);
            printf("worker %d hears START t%d, which does not list it\n", i, t)
        fi;
        seen[i] = t + 1;
        known[i] = EPOCH_OF(t)
    }
}

/* _settle: a START of a later transaction decides about the earlier one. */
inline settles(t) {
    if
    :: doing[i] == PREPARED && tx[t].base[PARTITION_OF(i)] == held[i] -> commits_group(held[i])
    :: else
    fi
}

/* _align: START names where the table stands; what is held begins exactly there, or is taken again. */
inline aligns(t) {
#ifdef BUG_GROUP_OFFSETS
    if
    :: seen[i] == 0 -> held[i] = group[PARTITION_OF(i)]
    :: else -> held[i] = tx[t].base[PARTITION_OF(i)]
    fi
#else
#if defined(BUG_START_NOT_COMPARED) || defined(BUG_NO_REWIND)
    skip
#else
    held[i] = tx[t].base[PARTITION_OF(i)]
#endif
#endif
}

/*
 * A WRITE_STATUS that comes when its coordinator has gone on is ignored (coordinator/transitions.py: legal in
 * ENDED only). So the model keeps none that nobody will take, but where a bug takes it.
 */
#ifdef BUG_LATE_STATUS
#define IS_AWAITED(t) true
#else
#define IS_AWAITED(t) (state[tx[t].by] == ENDED && current[tx[t].by] == t)
#endif
#if defined(BUG_NO_REWIND) || defined(BUG_START_NOT_COMPARED) || defined(ORDERS)
#define TOO_LATE(i, end) held[i] = end
#else
#define TOO_LATE(i, end) held[i] = 0
#endif

/*
 * on_end, on_flushed: files closed, WRITE_STATUS sent. The range starts where START says, and holds a record or
 * none. The files hold what was held from held[i] on, which is the same unless there is a bug.
 */
inline reports(t, records) {
    STEP {
        doing[i] == WRITING && WORK == t && SAID(t, END) && OBEYED(t) ->
        s6_not_of_a_lower_epoch(i, t);
        y = MAX(held[i], tx[t].base[PARTITION_OF(i)]) + records;
#ifdef BUG_RANGE_OFF_BY_ONE
        y = y + 1;
#endif
#ifdef ORDERS
        y = position;
#endif
        printf("worker %d hears END t%d and reports [%d, %d), files from %d\n",
            i, t, tx[t].base[PARTITION_OF(i)], y, held[i]);
        doing[i] = PREPARED;
        if
        :: IS_AWAITED(t) ->
            tx[t].status[i] = y + 1;
            tx[t].from[i] = held[i];
#if defined(ORDERS) && !defined(BUG_GONE_BACK_UNSAID)
            if :: been > y -> tx[t].behind = been :: else fi;
#endif
            held[i] = y
        :: else -> TOO_LATE(i, y)
        fi;
        y = 0
    }
}

/* on_ack: where it went on without this WRITE_STATUS, the offset differs, and it is taken again. */
inline hears_ack(t) {
    STEP {
        doing[i] == PREPARED && WORK == t && SAID(t, ACK) && OBEYED(t) ->
        s6_not_of_a_lower_epoch(i, t);
        printf("worker %d hears ACK t%d\n", i, t);
        if
        :: answered_by(t, i) -> commits_group(held[i])
        :: else ->
            held[i] = tx[t].base[PARTITION_OF(i)];
#ifdef ORDERS
            goes_back()
#endif
        fi;
        WAITS(i)
    }
}

/* on_abort, _abandon */
inline hears_abort(t) {
    STEP {
        doing[i] != WAITING && WORK == t && SAID(t, ABORT) && OBEYED(t) ->
        s6_not_of_a_lower_epoch(i, t);
        printf("worker %d hears ABORT t%d\n", i, t);
#ifndef BUG_NO_REWIND
        if
        :: doing[i] == PREPARED -> held[i] = tx[t].base[PARTITION_OF(i)]
        :: else
        fi;
#endif
#ifdef ORDERS
        goes_back();
#endif
        WAITS(i)
    }
}

/* on_revoked, _abandon: it gives the open transaction up by itself, and will not take its START again. */
inline abandons() {
    STEP {
        doing[i] == WRITING ->
#ifdef ORDERS
        goes_back();
#endif
        WAITS(i);
        printf("worker %d abandons t%d\n", i, WORK)
    }
}

/* _commit_group: a courtesy, which nobody reads. */
inline commits_group(o) {
    s8_not_past_the_table(i, o);
#ifdef BUG_GROUP_OFFSETS
    group[PARTITION_OF(i)] = o
#endif
}

#ifdef ORDERS
#define REPORTS(t) :: reports(t, 0) /* what it has read */
#else
#define REPORTS(t) :: reports(t, 0) :: reports(t, 1)
#endif

proctype Participant(byte i) {
end:
    do
    ANY_TRANSACTION(:: hears_start)
    ANY_TRANSACTION(REPORTS)
    ANY_TRANSACTION(:: hears_ack)
    ANY_TRANSACTION(:: hears_abort)
    :: abandons()
#ifdef ORDERS
    :: consumes()
#endif
    od
}
