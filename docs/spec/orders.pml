/*
 * With -DORDERS: what operators order of a run that goes on. One driver; table/service/orders.py is what it
 * remembers, coordinator/orders.py what a coordinator does of it, participant/intake.py how far a worker has read.
 *
 * What was read and not reported matters here, so worker 0 consumes by steps of its own, and reports all that it
 * has. It is the only one, and source partition 1 is nobody's, so that the world is small. An order is answered when the coordinator says that it is done: that it says so late, or
 * never, is a step that comes late. Settings are not modelled, nor a limit for whose sake a writer leaves some out.
 */

#ifndef ORDERS_MAX
#define ORDERS_MAX 2
#endif
#define RECORDS_MAX 1

/* Orders.hear, and what is known besides. Numbers of orders; 0: none. */
typedef Told {
    byte number;                 /* of the newest order that it has heard of */
    byte commit;                 /* the newest to commit that waits */
    byte pause;                  /* the one that paused the run */
    bit stop;                    /* the run drains */
    byte durable;                /* every order to commit up to this one is done */
    byte done;                   /* what was done as it heard the newest */
    byte back;                   /* up to where source partition 0 was read that is not committed since; or 0 */
}
Told told[COORDINATORS];

byte ordered;                    /* the driver's memory: the number of the newest order */
byte waiting;                    /* those to commit that are neither done nor given up: a bit each */
byte pause;                      /* the one that paused the run; 0: it is not paused */
bit stop;                        /* it is to drain */
bit stopped;                     /* it has ended, drained */

byte position;                   /* worker 0: what it reads next; what it holds is from held[0] up to here */
byte been;                       /* and how far it ever was */

byte must[ORDERS_MAX];           /* watched: what worker 0 had read as the order came */
bit unreached;                   /* watched: the pause is not answered */
byte open_at_pause;              /* watched: the transactions that were open as it came: a bit each */

#define COMMIT_OF(c) (told[c].commit > told[c].durable -> told[c].commit : 0)
#define DONE_BEFORE(c) MAX(told[c].done, told[c].durable)

/* Orders.settled */
#ifdef BUG_PAUSE_WAITS_FOR_NOTHING
#define IS_STILL(c) true
#else
#define IS_STILL(c) (state[c] == IDLE)
#endif
#define DONE(c) (COMMIT_OF(c) -> DONE_BEFORE(c) : \
    (told[c].pause && !IS_STILL(c) -> MAX(DONE_BEFORE(c), told[c].pause - 1) : told[c].number))

/* Opening.maybe_begin: while it is paused, for a later order to commit only; a drain goes before a pause. */
#define MAY_BEGIN(c) (!told[c].pause || told[c].stop || COMMIT_OF(c) > told[c].pause)

#if ORDERS_MAX == 3
#define NEWEST_WAITING (waiting & 4 -> 3 : (waiting & 2 -> 2 : waiting & 1))
#else
#define NEWEST_WAITING (waiting & 2 -> 2 : waiting & 1)
#endif
#define STANDS_STILL (pause && !stop && NEWEST_WAITING <= pause)

/* Ledger.paused: a coordinator that comes new may not have heard of it. */
#ifdef BUG_BEGUN_WHILE_PAUSED
#define REFUSES_TO_BEGIN stopped
#else
#define REFUSES_TO_BEGIN (STANDS_STILL || stopped)
#endif

/* --- the operator, and the driver ---------------------------------------------------------------- */

inline forgets_waiting() {
    waiting = 0;
    x = 0;
    do
    :: x < ORDERS_MAX -> must[x] = 0; x++
    :: else -> break
    od;
    x = 0
}

/* Orders.take */
inline orders_commit() {
    STEP {
        ordered < ORDERS_MAX && !stop ->
        must[ordered] = been;
        waiting = waiting | BIT(ordered);
        ordered++;
        printf("operator: order %d, commit; worker 0 has read up to %d\n", ordered, been)
    }
}

inline orders_pause() {
    STEP {
        ordered < ORDERS_MAX && !stop && !pause ->
        ordered++;
        forgets_waiting();
        pause = ordered;
        unreached = 1;
        do
        :: x < TRANSACTIONS ->
            if :: tx[x].phase == INFLIGHT -> open_at_pause = open_at_pause | BIT(x) :: else fi;
            x++
        :: else -> break
        od;
        x = 0;
        printf("operator: order %d, pause\n", ordered)
    }
}

inline orders_resume() {
    STEP {
        ordered < ORDERS_MAX && !stop && pause ->
        ordered++;
        pause = 0;
        unreached = 0;
        open_at_pause = 0;
        printf("operator: order %d, resume\n", ordered)
    }
}

inline orders_stop() {
    STEP {
        ordered < ORDERS_MAX && !stop ->
        ordered++;
        stop = 1;
        printf("operator: order %d, stop\n", ordered)
    }
}

/* Orders._forget_late: nobody waits for them any more. */
inline gives_orders_up() {
    STEP {
        waiting != 0 ->
        forgets_waiting();
        printf("table: the orders to commit are given up\n")
    }
}

/* Ledger.settled: of the coordinator that is registered. */
#ifdef BUG_STALE_IS_BELIEVED
#define BELIEVED(c) (epoch[c] != 0)
#else
#define BELIEVED(c) (epoch[c] != 0 && !STALE(c))
#endif
inline answers(c) {
    STEP {
        BELIEVED(c) && ((waiting & (BIT(DONE(c)) - 1)) || (unreached && pause <= DONE(c))) ->
        printf("table: coordinator %d says that all orders up to %d are done\n", c, DONE(c));
        x = 0;
        do
        :: x < DONE(c) ->
            if
            :: waiting & BIT(x) ->
                o2_of_what_is_durable(x);
                waiting = waiting & ~BIT(x);
                must[x] = 0
            :: else
            fi;
            x++
        :: else -> break
        od;
        x = 0;
        if
        :: unreached && pause <= DONE(c) ->
            o1_reached();
            unreached = 0;
            open_at_pause = 0
        :: else
        fi
    }
}

/* Ledger.directive, DRAINED: the coordinator that is registered has nothing open, or nobody ever had. */
#ifdef BUG_ENDED_UNDRAINED
#define DRAINED_BY(c) true
#else
#ifdef BUG_DRAINED_OF_ANYBODY
#define DRAINED_BY(c) (state[c] == DRAINED)
#else
#define DRAINED_BY(c) (state[c] == DRAINED && !STALE(c))
#endif
#endif
inline ends_run(c) {
    STEP {
        stop && !stopped && (DRAINED_BY(c) || registered[0] == 0) ->
        o3_drained();
        stopped = 1;
        printf("table: the run has ended\n")
    }
}

proctype Operator() {
end:
    do
    :: orders_commit()
    :: orders_pause()
    :: orders_resume()
    :: orders_stop()
    :: gives_orders_up()
    ANY_COORDINATOR(:: answers)
    ANY_COORDINATOR(:: ends_run)
    od
}

/* --- a coordinator ------------------------------------------------------------------------------- */

#define NEWS(c) (told[c].number != ordered || told[c].commit != NEWEST_WAITING || told[c].pause != pause || \
    told[c].stop != stop)

/* on_directed */
inline hears_orders() {
    STEP {
        state[c] != NEW && state[c] != FENCED && NEWS(c) ->
        told[c].done = DONE(c);
        told[c].number = ordered;
        told[c].commit = NEWEST_WAITING;
        told[c].pause = pause;
        told[c].stop = stop;
        printf("coordinator %d hears of orders up to %d: commit %d, pause %d, stop %d\n",
            c, ordered, told[c].commit, pause, stop)
    }
}

/* on_begun: REFUSED, which has it recover. */
inline is_refused() {
    STEP {
        state[c] == BEGINNING && TX.phase == NONE && !STALE(c) && STANDS_STILL ->
        printf("coordinator %d is not to begin t%d: the run is paused\n", c, current[c]);
        state[c] = LISTING;
        current[c] = 0
    }
}

/* maybe_begin: nobody says that it holds records, or the drain's transaction is over. */
inline drains() {
    STEP {
        state[c] == IDLE && told[c].stop ->
        state[c] = DRAINED;
        printf("coordinator %d is drained\n", c)
    }
}

#ifdef BUG_PART_SETTLES
#define IS_WHOLE(t) true
#else
#define IS_WHOLE(t) has_answered(t, 0)
#endif
#define IS_EMPTY(t) (!answered_by(t, 0) || tx[t].status[0] - 1 == tx[t].base[0])

inline reads_again(o) {
    if :: o > told[c].back -> told[c].back = o :: else fi
}

inline hears_behind() {
    if :: answered_by(current[c], 0) -> reads_again(TX.behind) :: else fi
}

/* Orders.decided: it was committed, or came to nothing. The table has source partition 0 up to o. */
inline settles_orders(o) {
#ifdef BUG_ANY_COMMIT_SETTLES
    TX.order = COMMIT_OF(c);
#endif
    hears_behind();
    if :: told[c].back <= o -> told[c].back = 0 :: else fi;
    if
    :: TX.order > told[c].durable && IS_WHOLE(current[c]) && told[c].back == 0 -> told[c].durable = TX.order
    :: else
    fi
}

inline settles_orders_of_commit() {
    if
    :: answered_by(current[c], 0) -> settles_orders(TX.status[0] - 1)
    :: else -> settles_orders(TX.base[0])
    fi
}

/* on_aborted: it came to nothing, or Orders.given_up. */
inline settles_or_gives_back() {
    if
    :: owes_nothing(current[c]) && IS_EMPTY(current[c]) -> settles_orders(TX.base[0])
    :: else ->
        if :: answered_by(current[c], 0) -> reads_again(TX.status[0] - 1) :: else fi;
        hears_behind()
    fi
}

/* --- worker 0 ------------------------------------------------------------------------------------ */

inline consumes() {
    STEP {
        position < RECORDS_MAX ->
        position++;
        been = MAX(been, position);
        printf("worker 0 has read up to %d\n", position)
    }
}

/* What it has in hand begins where START says, or it is taken again. */
inline keeps_or_goes_back(o) {
    if
    :: doing[i] == WRITING || held[i] != o -> position = o
    :: else
    fi
}

inline goes_back() {
    position = held[i]
}
