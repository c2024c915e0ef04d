"""Membership in the pipeline's consumer group: one Kafka consumer that is given source partitions and reads
none of them, on a thread of its own.

It holds no protocol state: who may write what is decided elsewhere, and a wrong belief here costs only work.
Reading is a client of its own (participant/source/fetcher.py), so that nothing that is slow there endangers
the session here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from control_topic.messages import Offsets, SourcePartition
from control_topic.threads import guarded
from participant.source.fetcher import sentence
from participant.source.group_trouble import FORBIDDEN, PASSING, GroupTrouble, forbidden
from participant.source.orders import Orders

log = logging.getLogger("lockstep.source")

POLL_S = 0.02
"""The longest that an order waits."""
REFRESH = "topic.metadata.refresh.interval.ms"
METADATA_MS = 30_000
"""How soon source partitions that were added are known. The driver counts on it
(lockstep/driver/stands.py)."""
PROOF_S = 10
LEAVE_S = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipCallbacks:
    """Whom the membership tells. All are called on its thread and must return at once.

    `committed` answers the table's offsets, None where they are not known.
    """

    committed: Callable[[], Offsets | None]
    assigned: Callable[[Mapping[SourcePartition, int | None]], None]
    revoked: Callable[[Sequence[SourcePartition]], None]
    fenced: Callable[[str], None]
    failed: Callable[[str], None]
    refused: Callable[[str], None]
    """Why the run cannot go on; a fresh worker would fare no better."""


class Membership:
    """The consumer and its thread. Orders may come from any thread.

    `partitions`: what the group gives us at the moment, as far as we know.
    """

    def __init__(
        self,
        *,
        kafka: Mapping[str, str],
        group: str,
        instance: str,
        topics: Sequence[str],
        session_timeout_ms: int,
        callbacks: MembershipCallbacks,
    ) -> None:
        self.partitions: frozenset[SourcePartition] = frozenset()
        self._topics = list(topics)
        self._callbacks = callbacks
        self._orders = Orders()
        self._group = group
        self._trouble = GroupTrouble(group)
        self._leaving = False
        self._refused = False
        self._leave_asked = threading.Event()
        self._start_lock = threading.Lock()
        self._consumer = Consumer(
            {
                "session.timeout.ms": session_timeout_ms,
                "heartbeat.interval.ms": max(300, session_timeout_ms // 20),  # rebalances are learned by it
                **kafka,
                **_soon(kafka),
                "group.id": group,
                "group.instance.id": instance,
                "partition.assignment.strategy": "cooperative-sticky",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "error_cb": self._on_error,
            },
            logger=log,
        )
        self._thread = threading.Thread(
            target=guarded("membership", self._run, callbacks.failed), name="membership", daemon=True
        )

    @property
    def alarms(self) -> tuple[str, ...]:
        """What does not go on at the moment, sentences for people. From any thread."""
        alarm = self._trouble.alarm
        return (alarm,) if alarm else ()

    # --- orders -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Join the group: once, and not after `leave`."""
        with self._start_lock:
            if not self._has_started() and not self._leave_asked.is_set():
                self._thread.start()

    def commit(self, offsets: Offsets) -> None:
        """Commit the group's offsets. A courtesy to lag tools: a failure is logged and forgotten."""
        self._orders.give(lambda: self._commit(offsets))

    def prove(
        self, partition: SourcePartition, offset: int | None, answer: Callable[[bool, str], None]
    ) -> None:
        """Answer whether the group itself still counts us as the owner, by a synchronous commit.

        `offset`: the table's; where it has none yet the group's own is committed again, or 0.
        """
        self._orders.give(lambda: self._prove(partition, offset, answer))

    def leave(self, timeout_s: float) -> bool:
        """Leave the group: unsubscribe, await the revocation, close. True when it was done in time."""
        with self._start_lock:
            self._leave_asked.set()
            if not self._has_started():
                self._close()
                return True
        self._orders.give(self._leave)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _has_started(self) -> bool:
        return self._thread.ident is not None

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )
            while not self._leaving:
                self._orders.obey()
                self._poll(POLL_S)
                self._judge_trouble()
        except KafkaException as error:
            self._callbacks.failed(f"the source consumer failed: {sentence(error)}")
        finally:
            self._close()

    def _poll(self, timeout_s: float) -> None:
        """Whatever record slips through before a pause is seen to is nobody's."""
        message = self._consumer.poll(timeout_s)
        error = message.error() if message is not None else None
        if message is None or error is None or self._is_final(error):
            return
        if message.topic() is None and error.code() not in PASSING:
            if self._trouble.met(time.monotonic(), error.code(), error.str()):
                log.warning("%s", self._trouble.alarm)
        else:
            log.debug("membership: %s", error.str())

    def _judge_trouble(self) -> None:
        """A member that still holds source partitions works, whatever it was told."""
        reason = self._trouble.final(time.monotonic())
        if reason and not self.partitions and not self._refused:
            self._refused = True
            self._callbacks.refused(reason)

    def _leave(self) -> None:
        """A static member's close alone leaves nothing: the group would wait for its session to end.

        It has left when it has no member id any more; a close before that would take the leave back.
        """
        self._consumer.unsubscribe()
        deadline = time.monotonic() + LEAVE_S
        while (self.partitions or self._consumer.memberid()) and time.monotonic() < deadline:
            self._poll(POLL_S)
        if self._consumer.memberid():
            log.warning("the group did not answer the leave within %d s", LEAVE_S)
        self._leaving = True

    def _close(self) -> None:
        try:
            self._consumer.close()
        except (KafkaException, RuntimeError) as error:
            log.warning("closing the group's consumer: %s", sentence(error))

    # --- what the group says ------------------------------------------------------------------------

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """The table's offsets are asked for at once, so that the protocol need not; the group's never.

        Where the table has none yet nothing is read: a log may begin anywhere.
        """
        self._trouble.over()
        committed = (self._callbacks.committed() if partitions else None) or {}
        given = [SourcePartition(p.topic, p.partition) for p in partitions]
        offsets = {partition: committed.get(partition) for partition in given}
        # an offset of their own, lest librdkafka ask for the group's; it is not read from here
        places = [TopicPartition(p.topic, p.partition, 0) for p in partitions]
        self._consumer.incremental_assign(places)
        if places:
            self._consumer.pause(places)
            self.partitions |= offsets.keys()
            self._callbacks.assigned(offsets)

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._trouble.over()
        gone = [SourcePartition(p.topic, p.partition) for p in partitions]
        self.partitions -= set(gone)
        if gone:
            self._callbacks.revoked(gone)

    def _on_error(self, error: KafkaError) -> None:
        if not self._is_final(error):
            log.warning("source broker: %s", error.str())

    def _is_final(self, error: KafkaError) -> bool:
        """Whether this consumer can never go on; then everybody concerned has been told.

        librdkafka wraps the cause of a fatal error in its text: a fenced static member is known by it only.
        """
        fatal = error.fatal() or error.code() == KafkaError._FATAL
        if error.code() == KafkaError.FENCED_INSTANCE_ID or (fatal and "fenced" in error.str()):
            self._callbacks.fenced(error.str())
        elif error.code() in FORBIDDEN:
            if not self._refused:
                self._refused = True
                self._callbacks.refused(forbidden(self._group, error.str()))
        elif fatal:
            self._callbacks.failed(f"the source consumer failed for good: {error.str()}")
        else:
            return False
        return True

    # --- offsets ----------------------------------------------------------------------------------

    def _commit(self, offsets: Offsets) -> None:
        places = [TopicPartition(p.topic, p.number, o) for p, o in offsets.items() if p in self.partitions]
        if not places:
            return
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except KafkaException as error:
            log.warning("the group's offsets were not committed (the table's are): %s", sentence(error))

    def _prove(
        self, partition: SourcePartition, offset: int | None, answer: Callable[[bool, str], None]
    ) -> None:
        if partition not in self.partitions:
            answer(False, f"{partition} is no longer assigned here")
            return
        place = TopicPartition(partition.topic, partition.number)
        try:
            if offset is None:
                offset = max(0, self._consumer.committed([place], timeout=PROOF_S)[0].offset)
            place.offset = offset
            self._consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            answer(False, sentence(error))
        else:
            answer(True, "")


def _soon(kafka: Mapping[str, str]) -> dict[str, int]:
    """How often metadata is asked for: as the configuration says, but as often as the driver expects."""
    given = kafka.get(REFRESH, "")
    return {REFRESH: min(METADATA_MS, int(given) if given.isdecimal() else METADATA_MS)}
