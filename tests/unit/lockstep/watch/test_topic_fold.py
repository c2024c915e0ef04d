"""The fold over the control topic: whose word counts, what becomes of transactions, what is news."""

from __future__ import annotations

import pytest

from control_topic.codec import Unreadable
from control_topic.messages import (
    AbortCommit,
    CoordinatorClaim,
    EndCommit,
    Halt,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    RunAnnounce,
    SourcePartition,
)
from control_topic.transport import Received
from lockstep.watch.tail import as_heard
from lockstep.watch.told import Aborted, Claimed, Committed, Joined, Phase, RunHalted, RunIsUp
from tests.heard_topic import P0, P1, T1, T2, W0, W1, Topic, announced


@pytest.fixture
def topic() -> Topic:
    return announced()


# --- transactions -------------------------------------------------------------------------------


def test_a_transaction_is_followed_from_start_to_its_ack(topic: Topic) -> None:
    topic.opened(T1, {P0: 0, P1: 0})
    assert topic.known.open_transaction is not None
    topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.reported(T1, P1, 0, 7)
    assert topic.known.committed_total == 0
    topic.acknowledged(T1, {P0: 5, P1: 7})
    [transaction] = topic.known.commits
    assert (transaction.records, transaction.files, transaction.size_bytes) == (12, 2, 120)
    assert transaction.ended_ms - transaction.started_ms == 4_000
    assert topic.known.committed_total == 12
    assert topic.known.open_transaction is None
    assert topic.news[-1] == Committed(transaction)


def test_a_transaction_knows_when_it_began_was_ended_and_answered_and_when_that_was_decided(
    topic: Topic,
) -> None:
    topic.opened(T1, {P0: 0})
    for _ in range(2):
        topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.reported(T1, P1, 0, 5)
    topic.acknowledged(T1, {P0: 5})
    [found] = topic.known.commits
    assert (found.started_ms, found.end_ms, found.ended_ms) == (2_000, 3_000, 7_000)
    assert found.answered == {W0: 5_000, W1: 6_000}
    assert (found.announced, found.writers) == (True, {W0, W1})


def test_repeated_messages_are_counted_once(topic: Topic) -> None:
    for _ in range(2):
        topic.opened(T1, {P0: 0})
    for _ in range(2):
        topic.reported(T1, P0, 0, 5)
    for _ in range(2):
        topic.acknowledged(T1, {P0: 5})
    assert len(topic.known.transactions) == 1
    assert topic.known.commits[0].records == 5
    assert [type(one) for one in topic.news] == [RunIsUp, Committed]


def test_an_abort_says_why_and_aborts_in_a_row_are_counted_up_to_the_next_commit(topic: Topic) -> None:
    for transaction in (T1, T2):
        topic.opened(transaction, {P0: 0})
        topic.send(AbortCommit(transaction=transaction, reason="storage is away"))
    assert [one.reason for one in topic.known.given_up] == ["storage is away"] * 2
    assert (topic.known.aborts, topic.known.abort_reason) == (2, "storage is away")
    assert topic.news[-1] == Aborted(topic.known.transactions[-1])
    topic.opened("3" * 32, {P0: 0})
    topic.acknowledged("3" * 32, {P0: 1})
    assert topic.known.aborts == 0


def test_a_commit_whose_ack_never_came_is_found_in_the_next_start(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.reported(T1, P0, 0, 5)
    topic.opened(T2, {P0: 5}, epoch=2)
    [found] = topic.known.commits
    assert (found.id, found.announced) == (T1, False)
    assert topic.known.last_commit_ms == topic.known.transactions[1].started_ms


def test_a_transaction_that_its_coordinator_left_open_is_told_as_rolled_back(topic: Topic) -> None:
    topic.opened(T1, {P0: 3})
    topic.reported(T1, P0, 3, 5)
    topic.opened(T2, {P0: 3}, epoch=2)
    assert [one.phase for one in topic.known.transactions] == [Phase.ABORTED, Phase.WRITING]
    assert "coordinator" in topic.known.given_up[0].reason


def test_nobody_leads_a_transaction_whose_coordinator_was_followed_by_another(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    assert topic.known.led_transaction is not None
    topic.send(CoordinatorClaim(), epoch=2, sender="coordinator@worker-1")
    assert topic.known.led_transaction is None
    assert topic.known.open_transaction is not None, "what became of it is not known yet"
    topic.opened(T2, {P0: 0}, epoch=2)
    assert topic.known.led_transaction is topic.known.transactions[-1]


# --- whose word counts ----------------------------------------------------------------------------


def test_a_coordinator_of_a_lower_epoch_is_not_believed(topic: Topic) -> None:
    topic.opened(T1, {P0: 0}, epoch=2)
    topic.acknowledged(T1, {P0: 99}, epoch=1)
    assert topic.known.open_transaction is not None
    assert topic.known.committed_total == 0


def test_a_decision_of_a_lower_epoch_is_not_believed_whoever_signs_it(topic: Topic) -> None:
    topic.opened(T1, {P0: 0}, epoch=2)
    topic.send(AbortCommit(transaction=T1, reason="forged"), epoch=1, sender="worker-0")
    assert topic.known.aborts == 0


def test_a_newer_run_begins_with_nobody_and_nothing_and_the_older_one_is_heard_no_more(topic: Topic) -> None:
    topic.send(ParticipantJoin(partitions=(P0,)), sender="worker-0", who=W0)
    topic.opened(T1, {P0: 0})
    topic.send(RunAnnounce(table_epoch=1), run="r2", epoch=1, sender="driver", who="e")
    topic.send(ParticipantJoin(partitions=(P1,)), sender="worker-1", who=W1)
    topic.opened(T2, {P0: 0})
    assert (topic.known.run, topic.known.workers, topic.known.transactions) == ("r2", {}, [])


def test_an_announcement_that_is_said_again_changes_nothing(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(RunAnnounce(address="127.0.0.1:1"), epoch=1, sender="driver", who="d")
    assert topic.known.led_transaction is not None
    assert topic.news == [RunIsUp("r1")]


def test_read_from_the_middle_the_run_is_that_of_the_first_coordinator_heard() -> None:
    topic = Topic()
    topic.opened(T1, {P0: 0})
    assert topic.known.run == "r1"
    topic.send(RunAnnounce(), epoch=1, sender="driver", who="d")
    assert topic.known.led_transaction is not None, "it is that very run's, said again"


def test_another_pipelines_messages_and_what_cannot_be_read_are_not_heard() -> None:
    message = Message(
        pipeline="demo",
        run="r1",
        epoch=1,
        sender="driver",
        incarnation="d",
        sequence=0,
        sent_at_ms=0,
        body=RunAnnounce(),
    )
    received = Received(offset=3, time_ms=5, size_bytes=9, content=message)
    heard = as_heard(received, "demo")
    assert heard is not None and (heard.offset, heard.time_ms, heard.message) == (3, 5, message)
    assert as_heard(received, "other") is None
    assert (
        as_heard(Received(offset=4, time_ms=5, size_bytes=9, content=Unreadable(reason="torn")), "demo")
        is None
    )


# --- who is there ---------------------------------------------------------------------------------


def test_who_joins_again_unchanged_and_who_claims_again_is_no_news(topic: Topic) -> None:
    for _ in range(3):
        topic.send(ParticipantJoin(partitions=(P0, P1)), sender="worker-1", who=W1)
        topic.send(CoordinatorClaim(), epoch=1)
    assert topic.news[1:] == [Joined("worker-1", True, (P0, P1)), Claimed("coordinator@worker-0", 1)]


def test_a_source_partition_has_one_owner_the_last_that_said_so(topic: Topic) -> None:
    topic.send(ParticipantJoin(partitions=(P0, P1)), sender="worker-1", who=W1)
    topic.send(ParticipantJoin(partitions=(P0,)), sender="worker-0", who=W0)
    assert topic.known.owners.of("worker-1") == {P1}
    topic.send(ParticipantLeave(partitions=(P1,)), sender="worker-1", who="an earlier incarnation")
    assert topic.known.owners.of("worker-1") == {P1}
    topic.send(ParticipantLeave(partitions=(P1,)), sender="worker-1", who=W1)
    assert not topic.known.owners.of("worker-1")


def test_a_halt_is_remembered_with_its_reason_and_when_it_was_said(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(Halt(reason="events:0 at offset 7 is poison"))
    assert topic.known.halted == ("events:0 at offset 7 is poison", 3_000)
    assert topic.news[-1] == RunHalted("events:0 at offset 7 is poison")
    assert topic.known.led_transaction is None


class Unsearched(tuple[SourcePartition, ...]):
    """To look for each of many source partitions in many takes too long."""

    def __contains__(self, one: object) -> bool:
        raise AssertionError(f"{one} was looked for in a tuple")


def test_who_owns_what_is_worked_out_in_one_pass(topic: Topic) -> None:
    topic.joined("worker-0", W0, P0, P1)
    topic.send(ParticipantJoin(partitions=Unsearched((P1,))), sender="worker-1", who=W1)
    topic.send(ParticipantLeave(partitions=Unsearched((P0,))), sender="worker-0", who=W0)
    assert dict(topic.known.owners) == {P1: "worker-1"}


class Hashed(SourcePartition):
    """Counts how often one was looked for."""

    times = 0

    def __hash__(self) -> int:
        Hashed.times += 1
        return hash(tuple(self))


def test_a_join_costs_what_it_says_and_not_what_all_others_own(topic: Topic) -> None:
    for number in range(50):
        places = (Hashed("t", 40 * number + place) for place in range(40))
        topic.joined(f"worker-{number}", f"{number:032}", *places)
    Hashed.times = 0
    topic.joined("worker-1", "e" * 32, Hashed("t", 0))
    assert len(topic.known.owners) == 50 * 40 - 40
    assert Hashed.times < 200


def test_all_workers_together_own_a_bounded_number_of_source_partitions(topic: Topic) -> None:
    topic.known.book.places_max = 10
    for number in range(4):
        places = (SourcePartition(f"t{number}", place) for place in range(6))
        topic.joined(f"worker-{number}", f"{number}" * 32, *places)
    assert [len(topic.known.owners.of(name)) for name in topic.known.workers] == [6, 4, 0, 0]
    topic.joined("worker-0", "0" * 32, *(SourcePartition("t0", place) for place in range(8)))
    assert len(topic.known.owners.of("worker-0")) == 6
    others = (SourcePartition("t0", place) for place in range(6))
    topic.joined("worker-3", "3" * 32, *(SourcePartition("t3", place) for place in range(9)), *others)
    assert len(topic.known.owners) == 10 and not topic.known.owners.of("worker-0")
