"""What an operator reads, and what an operator does: causes and names, short logs, a change of offsets."""

from __future__ import annotations

import logging
from typing import Any

from tests.seeded.base import Bug, of
from tests.seeded.holes import Hole

VOICES = "tests/unit/coordinator/test_voices.py"
QUIET = "tests/unit/control_topic/test_quiet.py"
OFFSETS = "tests/unit/lockstep/offsets/test_operator_commit.py"


def one_by_one(right: Any) -> Any:
    def sweep(sweeper: Any, grace_ms: int) -> Any:
        report = right(sweeper, grace_ms)
        for _ in range(report.removed):
            logging.getLogger("table.hudi.upkeep.sweep").warning("removed a file that no commit names")
        return report

    return sweep


def told_at_each_start(right: Any) -> Any:
    def hear(worker: Any, message: Any) -> None:
        logging.getLogger("lockstep.worker").info("%s claims epoch %d", message.sender, message.epoch)
        right(worker, message)

    return hear


def failures_alone(_right: Any) -> Any:
    return lambda ledger: "; ".join(dict.fromkeys(reason.rstrip(". ") for reason in ledger._failures.reasons))


def claims_nothing(_right: Any) -> Any:
    def register(claim: Any, epoch: int, incarnation: str) -> Any:
        from table.service.calls import Answer, Result

        claim._ledger.epoch = claim._ledger._highest_epoch = epoch
        return Answer(result=Result.OK)

    return register


def whatever_it_was_planned_on(right: Any) -> Any:
    def move(claim: Any, epoch: int, expected: Any, state: Any) -> Any:
        newest = claim._table.newest()
        return right(claim, epoch, expected if newest is None else newest.offsets, state)

    return move


def all_of_them(_right: Any) -> Any:
    return lambda items, *, shown_max=0: ", ".join(map(str, items))


BUGS = (
    Bug(
        "workers_are_incarnations",
        "An abort names the random incarnation of a worker, which nobody knows.",
        Hole.WORDS,
        {"coordinator.voices:Voices.name": lambda _right: lambda voices, incarnation: incarnation},
        of(
            VOICES,
            "test_a_worker_that_was_never_heard_is_shown_by_the_beginning_of_its_incarnation",
            "test_a_death_is_told_in_the_drivers_words_or_by_the_workers_name",
        ),
    ),
    Bug(
        "a_halt_forgets_the_deaths",
        "A halt says that workers did not answer, and not what they died of.",
        Hole.WORDS,
        {"table.service.ledger:Ledger._last_reasons": failures_alone},
        of(VOICES, "test_a_halt_says_what_workers_died_of_since_the_last_commit"),
    ),
    Bug(
        "a_list_is_spelled_out",
        "A line of the log names all that it is about, thousands of source partitions or files.",
        Hole.WORDS,
        {"control_topic.spelling:some": all_of_them},
        of(
            "tests/unit/control_topic/test_spelling.py",
            "test_a_short_list_is_spelled_out_and_of_a_long_one_the_beginning_and_a_number",
        ),
    ),
    Bug(
        "each_file_that_is_swept_has_a_line",
        "A sweep says of each file that it has removed it.",
        Hole.WORDS,
        {"table.hudi.upkeep.sweep:Sweeper.sweep": one_by_one},
        of(
            "tests/integration/test_hudi_table.py",
            "test_a_sweep_says_in_one_line_how_many_files_it_removed_and_names_one",
        ),
        raises={"builtins.ValueError": "too many values to unpack"},
    ),
    Bug(
        "every_worker_tells_of_every_claim",
        "At each start each worker has a line for each claim that it hears.",
        Hole.WORDS,
        {"participant.worker.worker:Worker._hear": told_at_each_start},
        of(
            "tests/unit/participant/worker/test_worker.py",
            "test_what_a_worker_hears_on_the_control_topic_is_no_line_of_its_log",
        ),
    ),
    Bug(
        "kafka_clients_say_it_each_time",
        "While a broker is away, its clients' complaints are all in the log.",
        Hole.WORDS,
        {"control_topic.quiet:OncePerWindow.filter": lambda _right: lambda quiet, record: True},
        of(
            QUIET,
            "test_a_client_says_the_same_thing_once_a_window_and_then_how_often_it_wanted_to",
            "test_that_a_broker_is_away_is_one_sentence_a_window_whichever_client_says_it",
        ),
    ),
    Bug(
        "an_operator_claims_nothing",
        "An operator's change of offsets does not ask whether somebody has claimed the table since its plan.",
        Hole.OFFSETS,
        {"table.service.claiming:Claiming.register": claims_nothing},
        of(OFFSETS, "test_a_table_that_somebody_has_claimed_since_is_left_alone"),
    ),
    Bug(
        "an_operator_moves_what_is_there",
        "An operator's change of offsets is made on whatever the table holds by then, planned or not.",
        Hole.OFFSETS,
        {"table.service.claiming:Claiming.move": whatever_it_was_planned_on},
        of(OFFSETS, "test_offsets_that_are_not_those_of_the_plan_are_left_alone"),
    ),
)
