"""Orders to a run, whoever is told of its commits, and whoever waits for them: what each may rely on."""

from __future__ import annotations

from threading import Lock
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.clocks import nothing
from tests.seeded.holes import Hole

ORDERS = "tests/unit/table/service/test_orders.py"
COMMANDS = "tests/unit/lockstep/orders/test_commands.py"
ORDERING = "tests/unit/lockstep/ui/test_ordering.py"
ROSTER = "tests/unit/table/service/test_roster.py"
SERVICER = "tests/unit/table/service/test_servicer.py"
NOTES = "tests/unit/lockstep/hooks/test_notes.py"
HISTORY = "tests/unit/lockstep/hooks/test_history.py"
WAITING = "tests/unit/lockstep/waiting/test_source.py"
REDACTION = "tests/unit/lockstep/support/test_redaction.py"


class EverybodysRun(str):
    """The run that anybody means."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __ne__(self, other: object) -> bool:
        return False


def forgetting_refusals(right: Any) -> Any:
    def begin(transactions: Any, epoch: int, transaction: str) -> Any:
        answer = right(transactions, epoch, transaction)
        if answer.result.name == "REFUSED":
            transactions._known.pop(transaction, None)
        return answer

    return begin


def of_one_gap(right: Any) -> Any:
    def met(gaps: Any, before: str, after: str) -> Any:
        for other in gaps._looks.keys() - {(before, after)}:
            del gaps._looks[other]
        return right(gaps, before, after)

    return met


def whoever_is_registered(right: Any) -> Any:
    return lambda roster, now_ms, _epoch: right(roster, now_ms, 0)


def one_by_one(right: Any) -> Any:
    lock = Lock()

    def walked(history: Any, *asked: Any) -> Any:
        with lock:
            return right(history, *asked)

    return walked


BUGS = (
    Bug(
        "a_page_takes_orders_without_the_token",
        "Whoever has a reader's cookie, or none, may order what they like.",
        Hole.ORDERS,
        {
            "lockstep.ui.access:Access.admits": always(True),
            "lockstep.ui.access:Access.is_bearer": always(True),
        },
        of(ORDERING, "test_without_the_token_itself_nobody_gives_any"),
    ),
    Bug(
        "an_order_goes_to_whichever_run_is_here",
        "What was ordered of one run is given to another that has taken its place.",
        Hole.ORDERS,
        {"lockstep.orders.given:Orders.run": lambda _right: lambda _orders: EverybodysRun()},
        of(COMMANDS, "test_an_order_reaches_the_run_that_was_meant_or_none"),
    ),
    Bug(
        "a_commit_that_was_given_up_is_taken_for_done",
        "Nobody says which orders to commit were given up, and what settles past them counts as their end.",
        Hole.ORDERS,
        {"table.service.orders:Orders.expired": always(())},
        of(
            ORDERS,
            "test_a_commit_that_was_given_up_is_said_to_be_and_is_not_taken_for_done",
            "test_a_commit_that_was_given_up_unseen_is_not_done_with_a_later_one",
        ),
    ),
    Bug(
        "a_commit_is_tried_for_ever",
        "An order to commit that nobody can do is told to every coordinator as long as the run goes on.",
        Hole.ORDERS,
        {"table.service.orders:Orders._forget_late": nothing},
        of(ORDERS, "test_a_commit_that_nobody_can_do_is_not_wanted_for_ever"),
    ),
    Bug(
        "a_begin_that_was_refused_is_begun_when_it_comes_again",
        "What was refused in a pause begins where the request comes again, and nobody knows of its instant.",
        Hole.ORDERS,
        {"table.service.transactions:Transactions.begin": forgetting_refusals},
        of(SERVICER, "test_a_begin_that_was_refused_because_the_run_is_paused_is_refused_for_good"),
    ),
    Bug(
        "a_run_ends_as_a_coordinator_has_drained_that_is_not_registered_any_more",
        "A drain is over as soon as any coordinator has nothing open, be it one that was taken over.",
        Hole.ORDERS,
        {"table.service.roster:Roster.coordinator_state": whoever_is_registered},
        of(
            ROSTER,
            "test_a_run_does_not_end_because_a_coordinator_before_the_registered_one_has_nothing_open",
        ),
    ),
    Bug(
        "a_gap_begins_the_count_of_another_anew",
        "Where commits are missing at two places of the timeline, each is waited for anew, for ever.",
        Hole.TOLD,
        {"lockstep.hooks.history:Gaps.met": of_one_gap},
        of(HISTORY, "test_each_gap_is_waited_for_by_itself", "test_two_gaps_take_no_longer_than_one"),
        {"lockstep.hooks.history.Unreadable": "not on the timeline now"},
    ),
    Bug(
        "hooks_read_one_after_the_other",
        "A hook waits while another one reads all that it has missed.",
        Hole.TOLD,
        {"lockstep.hooks.history:History._walked": one_by_one},
        of(HISTORY, "test_no_hook_waits_while_another_reads_what_it_has_missed"),
    ),
    Bug(
        "a_note_that_cannot_be_read_is_none",
        "A hook whose note is damaged begins behind the newest commit, and those between are never told.",
        Hole.TOLD,
        {"lockstep.hooks.notes:HookNote._read": always(None)},
        of(NOTES, "test_nobody_goes_on_without_a_note_that_cannot_be_read_and_nobody_writes_over_it"),
    ),
    Bug(
        "a_hook_notes_nothing",
        "Up to where a hook has told is noted by nobody.",
        Hole.TOLD,
        {"lockstep.hooks.notes:HookNote.write": nothing},
        of(NOTES, "test_it_goes_on_behind_what_was_delivered"),
    ),
    Bug(
        "a_wait_does_not_ask_whose_offsets_they_are",
        "Who waits takes offsets of a topic that was made again, or of another cluster, for reached.",
        Hole.TOLD,
        {"lockstep.waiting.wait:Wait._not_its_source": always("")},
        of(WAITING, "test_offsets_of_another_topic_or_cluster_are_not_what_is_waited_for"),
    ),
    Bug(
        "a_secret_stays_where_it_is_spelled_in_hexadecimal",
        "An archive for a colleague has secrets in it, spelled as bytes are dumped.",
        Hole.WORDS,
        {"lockstep.support.redaction:hexadecimal": always(())},
        of(REDACTION, "test_a_secret_goes_however_it_is_spelled"),
    ),
)
