"""Workers hand rows over to each other only where all can, and a commit needs all of them to have arrived."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic import causes
from control_topic.codec import BODY_BYTES_MAX, encode
from control_topic.messages import (
    AbortCommit,
    EndRequest,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from coordinator import events as c
from coordinator.exchange import REST_MAX, WORKERS_MAX, Exchange, disagreement
from coordinator.transitions import State
from table.service.channel import MESSAGE_BYTES_MAX
from tests.unit.conversation import INTERVAL_MS, P0, P1, P2, CoordinatorTalk, of, sent, status

OK = c.Result.OK
AT = {"a": "host-a:1", "b": "host-b:2"}
OWNS = {"a": P0, "b": P1}


def joined(talk: CoordinatorTalk, takes_at: dict[str, str], owns: dict[str, SourcePartition]) -> None:
    for who, partition in owns.items():
        talk.hear(ParticipantJoin(partitions=(partition,), takes_at=takes_at.get(who, "")), who)


def begun(talk: CoordinatorTalk, committed: dict[SourcePartition, int]) -> StartCommit:
    """The next transaction's START."""
    if talk.core.state is State.IDLE:
        for who in OWNS:
            talk.hear(ParticipantReady(), who)
    number = talk.begun
    (start,) = sent(talk.answer(OK, instant=f"i{number}", committed=committed), StartCommit)
    assert isinstance(start, StartCommit)
    return start


def started(takes_at: dict[str, str] = AT, owns: dict[str, SourcePartition] = OWNS) -> CoordinatorTalk:
    talk = CoordinatorTalk(settle_ms=0).idle(*owns.values())
    joined(talk, takes_at, owns)
    for who in owns:
        talk.hear(ParticipantReady(), who)
    assert talk.core.state is State.BEGINNING
    return talk


def ended(talk: CoordinatorTalk) -> CoordinatorTalk:
    assert begun(talk, {P0: 0, P1: 0}).takers == AT
    talk.tick(INTERVAL_MS)
    assert talk.core.state is State.ENDED
    return talk


def reports(**more: dict[str, dict[str, int]]) -> dict[str, WriteStatus]:
    return {who: status("t1", (partition, 0, 5), **more.get(who, {})) for who, partition in OWNS.items()}


# --- who takes rows -----------------------------------------------------------------------------


def test_start_says_where_each_writer_takes_rows() -> None:
    assert begun(started(), {P0: 0, P1: 0}).takers == AT


def test_where_one_writer_takes_none_nobody_hands_any_over() -> None:
    assert begun(started({"a": AT["a"]}), {P0: 0, P1: 0}).takers == {}


def test_a_single_writer_has_nobody_to_hand_over_to() -> None:
    talk = CoordinatorTalk(settle_ms=0).idle(P0)
    joined(talk, AT, {"a": P0})
    talk.hear(ParticipantReady(), "a")
    assert begun(talk, {P0: 0}).takers == {}


def test_who_takes_rows_and_writes_nothing_is_no_taker() -> None:
    talk = started()
    joined(talk, {"z": "host-z:3"}, {"z": P2})
    assert begun(talk, {P0: 0, P1: 0}).takers == AT


def test_start_says_the_same_again_whoever_has_come_meanwhile() -> None:
    talk = started()
    first = begun(talk, {P0: 0, P1: 0})
    again = talk.hear(ParticipantJoin(partitions=(P1,), takes_at="elsewhere:9"), "b")
    assert sent(again, StartCommit) == [first]


def test_an_address_is_forgotten_with_its_last_source_partition() -> None:
    talk = started()
    begun(talk, {P0: 0, P1: 0})
    joined(talk, {"z": "host-z:3"}, {"z": P0})
    assert talk.core.members.takes_at.keys() == {"b", "z"}


# --- what is committed --------------------------------------------------------------------------


def test_a_transaction_is_committed_where_all_counts_agree() -> None:
    talk = ended(started())
    said = reports(a={"handed": {"b": 3}, "taken": {"b": 1}}, b={"handed": {"a": 1}, "taken": {"a": 3}})
    talk.hear(said["a"], "a")
    (commit,) = of(talk.hear(said["b"], "b"), c.Commit)
    assert commit.statuses == tuple(said.values())


@pytest.mark.parametrize(
    "counts",
    [
        {"a": {"handed": {"b": 3}}},
        {"b": {"taken": {"a": 3}}},
        {"a": {"handed": {"b": 3}}, "b": {"taken": {"a": 2}}},
        {"a": {"handed": {"b": 3}}, "b": {"taken": {"a": 4}}},
        {"a": {"handed": {"b": 3}}, "b": {"handed": {"a": 3}}},
        {"a": {"handed": {"gone": 3}}},
        {"a": {"taken": {"gone": 3}}},
        {"a": {"handed": {"b": 3}, "taken": {"b": 1}}, "b": {"handed": {"a": 3}, "taken": {"a": 1}}},
    ],
)
def test_where_counts_differ_nothing_is_committed(counts: dict[str, Any]) -> None:
    talk = ended(started())
    said = reports(**counts)
    talk.hear(said["a"], "a")
    actions = talk.hear(said["b"], "b")
    (abort,) = of(actions, c.Abort)
    assert not of(actions, c.Commit)
    assert (abort.cause, abort.fault) == (causes.NOT_TAKEN, c.Fault.PIPELINE)


def test_an_operator_is_told_whose_rows_did_not_arrive() -> None:
    talk = ended(started())
    said = reports(a={"handed": {"b": 3_000}}, b={"taken": {"a": 2_999}})
    talk.hear(said["a"], "a")
    (abort,) = of(talk.hear(said["b"], "b"), c.Abort)
    assert abort.reason == "a handed 3,000 rows over to b, which took 2,999 of them"


def test_a_difference_is_found_whoever_of_the_two_says_more() -> None:
    assert disagreement(reports()) is None
    assert disagreement(reports(a={"handed": {"b": 1}}, b={"taken": {"a": 1}})) is None
    assert disagreement(reports(a={"handed": {"b": 1}})) == ("a", "b", 1, 0)
    assert disagreement(reports(b={"taken": {"a": 1}})) == ("a", "b", 0, 1)


# --- who goes -----------------------------------------------------------------------------------


def test_who_leaves_with_nothing_open_ends_a_transaction_in_which_others_wait_for_its_rows() -> None:
    talk = started()
    begun(talk, {P0: 0, P1: 0})
    (abort,) = of(talk.hear(ParticipantLeave(partitions=(P1,)), "b"), c.Abort)
    assert abort.cause == causes.WORKER_LEFT and "others wait for rows" in abort.reason


def test_who_leaves_some_of_its_source_partitions_does_not() -> None:
    talk = CoordinatorTalk(settle_ms=0).idle(P0, P1, P2)
    talk.hear(ParticipantJoin(partitions=(P0,), takes_at=AT["a"]), "a")
    talk.hear(ParticipantJoin(partitions=(P1, P2), takes_at=AT["b"]), "b")
    talk.hear(ParticipantReady(), "a")
    assert begun(talk, {P0: 0, P1: 0, P2: 0}).takers == AT
    assert not of(talk.hear(ParticipantLeave(partitions=(P1,)), "b"), c.Abort)
    assert not of(talk.hear(ParticipantLeave(partitions=(P0,)), "z"), c.Abort)


def test_without_an_exchange_who_leaves_with_nothing_open_delays_nobody() -> None:
    talk = started({})
    begun(talk, {P0: 0, P1: 0})
    assert not of(talk.hear(ParticipantLeave(partitions=(P1,)), "b"), c.Abort)


# --- where it does not work ---------------------------------------------------------------------


def test_after_an_abort_the_rows_are_written_without_an_exchange_and_then_with_one_again() -> None:
    talk = started()
    begun(talk, {P0: 0, P1: 0})
    talk.hear(ParticipantLeave(partitions=(P1,), transaction="t1"), "b")
    assert sent(talk.answer(OK), AbortCommit)
    joined(talk, AT, OWNS)
    assert begun(talk, {P0: 0, P1: 0}).takers == {}
    _commit(talk)
    assert begun(talk, {P0: 5, P1: 5}).takers == AT


def _commit(talk: CoordinatorTalk) -> None:
    transaction = talk.core.transaction
    assert transaction is not None
    talk.hear(EndRequest(transaction=transaction.id, reason="records"), "a")
    for who, partition in OWNS.items():
        talk.hear(status(transaction.id, (partition, 0, 5)), who)
    talk.answer(OK)


def rests(exchange: Exchange) -> int:
    """How many transactions in a row are to go without."""
    count = 0
    while not exchange.takers(AT, AT):
        exchange.committed(False)
        count += 1
    return count


def test_each_failure_in_a_row_doubles_how_many_transactions_go_without() -> None:
    exchange = Exchange()
    found = []
    for _ in range(9):
        exchange.aborted(True)
        found.append(rests(exchange))
    assert found == [1, 2, 4, 8, 16, 32, 64, REST_MAX, REST_MAX]


def test_one_that_is_committed_makes_the_next_failure_the_first() -> None:
    exchange = Exchange()
    for _ in range(3):
        exchange.aborted(True)
        rests(exchange)
    exchange.committed(True)
    exchange.aborted(True)
    assert rests(exchange) == 1


def test_an_abort_of_a_transaction_without_an_exchange_says_nothing_about_it() -> None:
    exchange = Exchange()
    exchange.aborted(False)
    assert rests(exchange) == 0


# --- how many --------------------------------------------------------------------------------------


def names(count: int) -> list[str]:
    return [f"{number:032x}" for number in range(count)]


def test_more_workers_than_can_each_write_what_they_read() -> None:
    at = dict.fromkeys(names(WORKERS_MAX + 1), "host:1")
    assert Exchange().takers(at, at) == {}
    del at[names(1)[0]]
    assert Exchange().takers(at, at) == at


def test_what_as_many_workers_as_can_say_of_each_other_is_little_beside_what_may_be_said() -> None:
    """In one record of the topic each, and all together in the call that commits."""
    who = names(WORKERS_MAX)
    rows = dict.fromkeys(who[1:], 10**12)
    said = WriteStatus(transaction="t" * 32, ranges=(), handed=rows, taken=rows)
    message = Message(
        pipeline="p",
        run="r",
        sender="worker-1",
        incarnation=who[0],
        epoch=1,
        sequence=1,
        sent_at_ms=0,
        body=said,
    )
    (record,) = encode(message)
    assert len(record) < BODY_BYTES_MAX // 32
    assert len(record) * WORKERS_MAX < MESSAGE_BYTES_MAX // 32
