/*
 * Lockstep's protocol, for the model checker spin. How to run it and how to read it: README.md beside this.
 *
 * The names are those of docs/protocol.md; each step names the method of the core that it mirrors. A step is
 * atomic, and any step of anybody may come next. So nothing needs a clock: whoever is slow, paused, cut off or
 * dead is somebody whose next step does not come, for a while or for ever, and who is back when it does.
 *
 *   coordinator.pml   one claim on an epoch: coordinator/election.py, coordinator/core.py
 *   participant.pml   one incarnation of a worker: participant/core.py
 *   table.pml         the driver's table service, and the table: table/service/transactions.py, table/memory.py
 *   orders.pml        what operators order of a run that goes on
 *   properties.pml    what must hold
 *
 * The control topic is the set of everything that was ever said. Nothing leaves it, and everybody may read
 * any of it at any time, again, out of order, or never: loss, repetition, delay and reordering, without bound.
 *
 * Compiled with -DBUG_<NAME> the model has that bug, and spin must find it.
 */

#ifndef RUNS
#define RUNS 1 /* drivers: with 2, coordinator 1 and its workers belong to a second driver on the same table */
#endif
#ifndef COORDINATORS
#define COORDINATORS 2 /* claims */
#endif
#ifndef INCARNATIONS
#define INCARNATIONS 2 /* of workers; number i owns source partition i % 2 */
#endif
#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#define PARTITIONS 2
#ifdef ORDERS
#define WORKERS 1
#else
#define WORKERS INCARNATIONS
#endif

#ifndef STEP
#define STEP d_step
#endif

/* A coordinator's states, as in coordinator/transitions.py. LISTING and RECOVERING are both RECOVERING there. */
mtype:coordinator = { NEW, REGISTERING, LISTING, RECOVERING, IDLE, BEGINNING, STARTED, ENDED, COMMITTING, RESOLVING,
    ABORTING, DRAINED, FENCED };

/* A participant's, as in participant/transitions.py. JOINING is WAITING here, and FLUSHING is a part of WRITING. */
mtype:participant = { WAITING, WRITING, PREPARED };

/* An instant's, as in table/memory.py. */
mtype:instant = { NONE, INFLIGHT, COMPLETED, ROLLED_BACK };

/* What a coordinator has said of a transaction: one bit each. */
#define START 1
#define END 2
#define ACK 4
#define ABORT 8

typedef Transaction {
    byte by;                     /* the coordinator that began it */
    byte base[PARTITIONS];       /* the committed offsets, as its begin was answered and START names them */
    byte writer[PARTITIONS];     /* START's writers: an incarnation + 1, or 0 */
    byte expected;               /* the source partitions still owed: a bit each */
    byte taken;                  /* the incarnations whose WRITE_STATUS counts: a bit each */
    byte said;                   /* START, END, ACK, ABORT: what the control topic holds of it */
    byte status[INCARNATIONS];   /* the WRITE_STATUS that the topic holds: its range's end + 1, or 0 */
    byte from[INCARNATIONS];     /* and the first offset that its files really hold */
#ifdef ORDERS
    byte order;                  /* the order to commit that had been heard of when it was ended; 0: none */
    byte behind;                 /* up to where worker 0 says that it had read before it went back; or 0 */
#endif
    bit asked;                   /* the commit call is out, and may arrive at any time from now on */
    mtype:instant phase;
    bit rollback;                /* its rollback is requested */
    bit checked;                 /* its commit passed the checks under the table lock */
}

Transaction tx[TRANSACTIONS];
byte begun;                      /* transactions begun so far */

mtype:coordinator state[COORDINATORS];
byte epoch[COORDINATORS];        /* claimed; 0: none yet */
byte current[COORDINATORS];      /* its transaction */
byte found[COORDINATORS];        /* the open instants that its recovery found: a bit each */

mtype:participant doing[INCARNATIONS];
byte known[INCARNATIONS];        /* the highest epoch that it has seen */
byte seen[INCARNATIONS];         /* the last transaction whose START it took, + 1 */
byte held[INCARNATIONS];         /* the first offset of what it holds and has not reported */

byte registered[RUNS];           /* the table service's memory: the epoch of this run's coordinator */
byte locked;                     /* the table lock: the transaction whose commit holds it, + 1 */
byte offsets[PARTITIONS];        /* the newest commit: offsets, epoch, run */
byte table_epoch;
byte table_run;

byte rows[PARTITIONS];           /* watched, not used: the offsets whose rows are in the table, a bit each */
byte recovered[RUNS];            /* watched: the newest epoch whose recovery has ended */
#ifdef BUG_GROUP_OFFSETS
byte group[PARTITIONS];          /* what the consumer group has committed */
#endif

byte x;                          /* for loops; 0 between steps */
byte y;

#define BIT(n) (1 << (n))
#define RUN_OF_COORDINATOR(c) (RUNS == 2 -> (c) : 0)
#define RUN_OF_INCARNATION(i) (RUNS == 2 -> (i) / 2 : 0)
#define PARTITION_OF(i) ((i) % 2)
#define TX tx[current[c]]

#if TRANSACTIONS == 3
#define ANY_TRANSACTION(step) step(0) step(1) step(2)
#else
#define ANY_TRANSACTION(step) step(0) step(1)
#endif

#if COORDINATORS == 3
#define ANY_COORDINATOR(step) step(0) step(1) step(2)
#else
#define ANY_COORDINATOR(step) step(0) step(1)
#endif

#if INCARNATIONS == 4
#define ANY_INCARNATION(step) step(0) step(1) step(2) step(3)
#elif INCARNATIONS == 3
#define ANY_INCARNATION(step) step(0) step(1) step(2)
#else
#define ANY_INCARNATION(step) step(0) step(1)
#endif

#define EPOCH_OF(t) epoch[tx[t].by]
#define RUN_OF(t) RUN_OF_COORDINATOR(tx[t].by)

/* A call of coordinator c would be answered STALE. */
#define STALE(c) (epoch[c] != registered[RUN_OF_COORDINATOR(c)])
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define KNOWN_TO_TABLE(r) MAX(registered[r], table_epoch)
#if COORDINATORS == 3
#define CLAIMED MAX(epoch[0], MAX(epoch[1], epoch[2]))
#else
#define CLAIMED MAX(epoch[0], epoch[1])
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

#include "properties.pml"
#ifdef ORDERS
#include "orders.pml"
#endif
#include "table.pml"
#include "participant.pml"
#include "coordinator.pml"

init {
    atomic {
        x = 0;
        do
        :: x < COORDINATORS -> state[x] = NEW; run Coordinator(x); x++
        :: else -> break
        od;
        x = 0;
        do
        :: x < TRANSACTIONS -> tx[x].phase = NONE; x++
        :: else -> break
        od;
        x = 0;
        do
        :: x < WORKERS -> doing[x] = WAITING; run Participant(x); x++
        :: else -> break
        od;
        x = 0;
        do
        :: x < RUNS -> run TableService(x); x++
        :: else -> break
        od;
#ifdef ORDERS
        run Operator();
#endif
        x = 0
    }
}
