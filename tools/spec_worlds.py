"""What `tools/spec.py` explores: the worlds in which the model must hold, and the bugs that it must find."""

from __future__ import annotations

from dataclasses import dataclass

ONE_DRIVER: tuple[str, ...] = ()
RESTART = ("INCARNATIONS=3", "EVERYBODY_OWNED")
TWO_DRIVERS = ("RUNS=2", "INCARNATIONS=4", "EVERYBODY_OWNED")
ORDERED = ("ORDERS",)
ONE_ORDER = ("ORDERS", "ORDERS_MAX=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One configuration of the model. `defines`: as in docs/spec/lockstep.pml. `says`: what it is.

    `has_error`: a bug is compiled in, and must be found. `shows_dead_lines`: its lines must all be reached.
    """

    name: str
    says: str
    defines: tuple[str, ...] = ()
    has_error: bool = False
    shows_dead_lines: bool = False


WORLDS: tuple[World, ...] = (
    World(
        name="one_driver",
        says="2 coordinators, 2 participants, 2 transactions",
        defines=ONE_DRIVER,
        shows_dead_lines=True,
    ),
    World(
        name="restarted_worker",
        says="and a worker that is restarted, its old incarnation a zombie",
        defines=("INCARNATIONS=3",),
    ),
    World(
        name="two_drivers",
        says="2 drivers on one table, each with a coordinator, 2 participants and any of the 2 transactions",
        defines=("RUNS=2", "INCARNATIONS=4"),
    ),
    World(
        name="three_claims",
        says="3 coordinators, 2 participants, 2 transactions; every source partition is owned",
        defines=("COORDINATORS=3", "EVERYBODY_OWNED"),
    ),
    World(
        name="three_transactions",
        says="2 coordinators, 2 participants, 3 transactions; every source partition is owned",
        defines=("TRANSACTIONS=3", "EVERYBODY_OWNED"),
    ),
    World(
        name="orders",
        says="2 coordinators, 1 participant, 2 transactions, 2 orders of an operator (commit, pause, resume, "
        "stop)",
        defines=ORDERED,
    ),
)


def _bug(name: str, says: str, world: tuple[str, ...] = ONE_DRIVER) -> World:
    return World(name=name, says=says, defines=(*world, f"BUG_{name.upper()}"), has_error=True)


BUGS: tuple[World, ...] = (
    _bug("no_fence", "a commit is not asked for its epoch"),
    _bug("ack_before_commit", "ACK is said when the commit is called"),
    _bug("unknown_is_failed", "a commit that is not answered is taken as failed"),
    _bug("unknown_is_committed", "a commit that is not answered is taken as done"),
    _bug("absent_is_proof", "a commit that is not found is aborted without a rollback"),
    _bug("late_status", "a WRITE_STATUS of the transaction before counts"),
    _bug("count_not_set", "as many WRITE_STATUS as writers, whoever sent them"),
    _bug("no_rewind", "an ABORT does not rewind, and START's offsets are not compared"),
    _bug("start_not_compared", "START's offsets are not compared; an ABORT that is heard rewinds"),
    _bug("range_off_by_one", "a range ends one after its last record"),
    _bug("old_claim_obeyed", "a coordinator that was superseded is obeyed"),
    _bug("rollback_without_proof", "a rollback is requested though the instant may be complete"),
    _bug("rollback_ignored", "an instant whose rollback is requested may still be committed"),
    _bug("no_recovery", "a new coordinator does not roll back what it finds open"),
    _bug("no_guardian", "a driver that is frozen inside the table lock comes back after it expired"),
    _bug("unlisted_files", "files of an incarnation that START does not list are taken", RESTART),
    _bug("group_offsets", "a new incarnation starts where the consumer group stands", RESTART),
    _bug(
        "offsets_not_compared",
        "a commit's start offsets are not compared with the table's",
        TWO_DRIVERS,
    ),
    _bug("runs_not_compared", "of two drivers with the same epoch both are believed", TWO_DRIVERS),
    _bug(
        "begun_while_paused",
        "the table service begins for a coordinator that has not heard of the pause",
        ORDERED,
    ),
    _bug(
        "pause_waits_for_nothing",
        "a pause is said to be reached while what was open is open",
        ORDERED,
    ),
    _bug(
        "stale_is_believed",
        "what a superseded coordinator says of orders is believed",
        ORDERED,
    ),
    _bug(
        "any_commit_settles",
        "an order to commit is done with a transaction that had ended before it was heard of",
        ONE_ORDER,
    ),
    _bug(
        "part_settles",
        "an order to commit is done though a source partition was not reported",
        ONE_ORDER,
    ),
    _bug(
        "gone_back_unsaid",
        "a writer does not say up to where it had read before it went back",
        ONE_ORDER,
    ),
    _bug("ended_undrained", "a run that is told to stop ends while a transaction is open", ORDERED),
    _bug(
        "drained_of_anybody",
        "a run ends as a coordinator has drained that is not registered any more",
        ORDERED,
    ),
)

SURVIVES = "HOLDER_SURVIVES"

WHAT_IFS: tuple[World, ...] = (
    World(
        name="stricter",
        says="two drivers whose lock holders survive its expiry, and two more checks: a commit is refused "
        "while another instant of the pipeline is open; a rollback looks again before it is carried out",
        defines=(*TWO_DRIVERS, SURVIVES, "STRICT_COMMIT", "STRICT_ROLLBACK"),
    ),
    World(
        name="stricter_rollback",
        says="the same without the check of the commit: two open instants may both be committed",
        defines=(*TWO_DRIVERS, SURVIVES, "STRICT_ROLLBACK"),
        has_error=True,
    ),
    World(
        name="stricter_commit",
        says="the same without the check of the rollback: a completed instant may be rolled back",
        defines=(*TWO_DRIVERS, SURVIVES, "STRICT_COMMIT"),
        has_error=True,
    ),
)
"""Not the protocol as it is: what would follow from another one. Explored by name only."""
