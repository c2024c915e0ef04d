"""What is asked of the Kafka broker about the source topics: who they are, what they hold, who reads them.

Answers are facts at one moment. Everything has a deadline and a bounded number of attempts; what Kafka calls
an error becomes a sentence of this module's small tree.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, NoReturn, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, ListOffsetsResultInfo, OffsetSpec
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_exponential

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.brokers.group import OFFSETS_TOPIC, GroupMember, GroupView, why_no_coordinator
from table.service.source_facts import (
    MissingTopic,
    NoCoordinator,
    SourceFacts,
    SourceRefused,
    SourceUnavailable,
    Unauthorized,
)

_client_log = logging.getLogger(f"{__name__}.librdkafka")

TIMEOUT_S = 30.0
ATTEMPT_TIMEOUT_S = 10.0
ANSWER_MARGIN_S = 1.0
LOOK_S = 2.0
"""For metadata, which any broker that is there has at hand."""
ATTEMPTS_MAX = 40
MISSING_GRACE_S = 3.0
"""A topic that was made a moment ago may still be unknown to the broker that is asked."""

PARTITIONS_PER_REQUEST_MAX = 1_000
GROUP_TIMEOUT_S = 3_600.0
"""librdkafka's own for a question to a group's coordinator, the longest that it takes. Nobody waits so long:
see `SourceTopics._describe_group`."""
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"

_RETRIED = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
_MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
_NO_LEADER = frozenset(
    {
        KafkaError._NOENT,  # of a partition that does not exist, too, and where no broker answers at all
        KafkaError._TIMED_OUT,  # waiting for a leader, or for an answer
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
"""Of a question for a leader: which partitions are meant, and why they have none, only metadata says."""
_REFUSED_ACCESS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_CONNECTION_REFUSED = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})

K = TypeVar("K")
V = TypeVar("V")


class SourceTopics:
    """The source topics as the broker sees them. May be used from several threads.

    `kafka`: librdkafka properties with secrets resolved. `timeout_s`: the most that one question may take.
    Every method raises `SourceTopicsError`.
    """

    def __init__(
        self, kafka: Mapping[str, str], topics: Sequence[str], *, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._topics = tuple(topics)
        self._timeout_s = timeout_s
        self._servers = kafka.get("bootstrap.servers", "")
        self._last_error: KafkaError | None = None
        self._properties: dict[str, Any] = {
            **kafka,
            "allow.auto.create.topics": False,
            "error_cb": self._on_error,
        }
        self._group_admin: AdminClient | None = None
        try:
            self._admin = AdminClient(self._properties, logger=_client_log)
        except KafkaException as error:
            # librdkafka's own text may quote a value, and a value may be a secret.
            raise SourceRefused(
                "librdkafka refuses the properties in source.kafka; `lockstep validate` names the wrong one."
            ) from error

    def facts(self) -> SourceFacts:
        """Who the cluster and its topics are. Raises `MissingTopic` where one does not exist."""
        # AdminClient.describe_cluster ends the process (an assertion of librdkafka 2.16.0) where the answer
        # names no broker, as of a cluster that has fenced them all.
        cluster = self._ask(
            "describe the cluster", lambda s: self._admin.list_topics(self._topics[0], timeout=s)
        )
        wanted = TopicCollection(list(self._topics))
        described = self._ask(
            f"describe source topic {', '.join(self._topics)}",
            lambda s: self._gather(self._admin.describe_topics(wanted, request_timeout=s), s),
        )
        ids = {topic: str(described[topic].topic_id) for topic in self._topics}
        return SourceFacts(
            cluster=cluster.cluster_id or "",
            topics={topic: "" if value in (_NO_TOPIC_ID, "None") else value for topic, value in ids.items()},
            partitions=tuple(
                SourcePartition(topic, number)
                for topic in self._topics
                for number in sorted(p.id for p in described[topic].partitions)
            ),
        )

    def earliest(self, partitions: Sequence[SourcePartition]) -> Offsets:
        """The oldest offset that each log still holds, or could hold where it is empty."""
        return self._list_offsets(partitions, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)

    def end(self, partitions: Sequence[SourcePartition], read_committed: bool = True) -> Offsets:
        """One past the last offset that a reader can reach.

        Read committed: the last stable offset, where the oldest open transaction begins.
        """
        level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        return self._list_offsets(partitions, OffsetSpec.latest(), level)

    def group_offsets(self, group: str, partitions: Sequence[SourcePartition] | None = None) -> Offsets:
        """What the consumer group committed; partitions without a commit are absent.

        `partitions`: of which, by default all of the source topics. The group is not joined.
        """
        asked = self.facts().partitions if partitions is None else partitions
        places = [TopicPartition(p.topic, p.number) for p in asked]
        # AdminClient.list_consumer_group_offsets would need no consumer, and ends the process (SIGSEGV,
        # librdkafka 2.16.0) while the group's coordinator is still loading.
        consumer = Consumer(
            {**self._properties, "group.id": group, "enable.auto.commit": False}, logger=_client_log
        )
        try:
            answer = self._ask(
                f"tell the offsets of consumer group {group}", lambda s: consumer.committed(places, s)
            )
        finally:
            consumer.close()
        return {
            SourcePartition(place.topic, place.partition): place.offset
            for place in answer
            if place.error is None and place.offset >= 0
        }

    def group_members(self, group: str) -> list[GroupMember]:
        """Who is alive in the consumer group; nobody where the group does not exist."""
        return list(self.group(group).members)

    def group(self, group: str) -> GroupView:
        """How the consumer group stands. Raises `NoCoordinator` where the broker answers and has none."""
        try:
            described = self._ask(f"describe consumer group {group}", partial(self._describe_group, group))
        except _NoGroup:
            return GroupView(state="DEAD", members=())
        except SourceUnavailable as error:
            why = self._why_no_coordinator(group)
            if not why:
                raise
            raise NoCoordinator(
                f"The Kafka broker at {self._servers} answers, and consumer group {group} has no coordinator:"
                f" {why}. No worker can join the group before it has one."
            ) from error
        members = tuple(
            GroupMember(
                client=member.client_id or "",
                host=member.host or "",
                instance=member.group_instance_id or "",
                partitions=tuple(
                    SourcePartition(place.topic, place.partition)
                    for place in (member.assignment.topic_partitions if member.assignment else ())
                ),
            )
            for member in described[group].members
        )
        return GroupView(state=described[group].state.name, members=members)

    # --- asking -----------------------------------------------------------------------------------

    def _describe_group(self, group: str, timeout_s: float) -> dict[str, ConsumerGroupDescription]:
        """With a client of its own, which is let go together with a question that nobody answers.

        A question to a coordinator that is away, whose own time runs out, ends the process as soon as the
        coordinator is back (an assertion on memory that was freed; librdkafka 2.16.0).
        """
        admin = self._group_admin or AdminClient(self._properties, logger=_client_log)
        self._group_admin = admin
        answers = admin.describe_consumer_groups([group], request_timeout=GROUP_TIMEOUT_S)
        try:
            return self._gather(answers, timeout_s)
        except _TryAgain:
            admin.poll(0)  # why it cannot connect, where that is said
            self._group_admin = None
            del admin  # else the error that is raised here keeps it
            raise

    def _why_no_coordinator(self, group: str) -> str:
        """Empty where the broker does not answer at all, or does not say."""
        try:
            seen = self._admin.list_topics(OFFSETS_TOPIC, timeout=min(ATTEMPT_TIMEOUT_S, self._timeout_s))
        except KafkaException:
            return ""
        topic = seen.topics.get(OFFSETS_TOPIC)
        if topic is None or topic.error is not None:
            if topic is not None and topic.error is not None and topic.error.code() not in _MISSING:
                return topic.error.str()
            return why_no_coordinator(group, {}, len(seen.brokers))
        leaders = {number: one.leader for number, one in topic.partitions.items()}
        return why_no_coordinator(group, leaders, len(seen.brokers))

    def _list_offsets(
        self, partitions: Sequence[SourcePartition], spec: OffsetSpec, level: IsolationLevel
    ) -> Offsets:
        offsets: dict[SourcePartition, int] = {}
        for begin in range(0, len(partitions), PARTITIONS_PER_REQUEST_MAX):
            chunk = partitions[begin : begin + PARTITIONS_PER_REQUEST_MAX]
            request = {TopicPartition(p.topic, p.number): spec for p in chunk}
            names = ", ".join(sorted({p.topic for p in chunk}))
            answer = self._ask(
                f"list the offsets of source topic {names}",
                partial(self._offsets_once, request, level),
            )
            offsets.update({SourcePartition(p.topic, p.partition): a.offset for p, a in answer.items()})
        return offsets

    def _offsets_once(
        self, request: dict[TopicPartition, OffsetSpec], level: IsolationLevel, timeout_s: float
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        asked = self._admin.list_offsets(request, isolation_level=level, request_timeout=timeout_s)
        try:
            answers = self._gather(asked, timeout_s)
        except _Failed as error:
            if error.error.code() in _NO_LEADER:
                self._look_for_leaders(request)
            raise
        # Where one leader answers and another does not, librdkafka (2.16.0) gives the latter's as -1001, and
        # no error.
        unanswered = [place for place, answer in answers.items() if answer.offset < 0]
        if unanswered:
            self._look_for_leaders(unanswered)
            places = sorted(SourcePartition(place.topic, place.partition) for place in unanswered)
            raise _TryAgain(f"the broker that leads {some(places, shown_max=1)} does not answer")
        return answers

    def _look_for_leaders(self, places: Iterable[TopicPartition]) -> None:
        """Raises what is wrong where one has no leader; where nobody says so, the question's error stands."""
        leaderless = []
        try:
            found = {
                topic: self._admin.list_topics(topic, timeout=LOOK_S).topics[topic]
                for topic in {place.topic for place in places}
            }
        except KafkaException:
            return
        for place in places:
            topic = found[place.topic]
            if topic.error is not None:
                raise _Failed(place.topic, topic.error)
            if place.partition not in topic.partitions:
                raise _Failed(place, KafkaError(KafkaError._UNKNOWN_PARTITION))
            if topic.partitions[place.partition].leader < 0:
                leaderless.append(SourcePartition(place.topic, place.partition))
        if leaderless:
            raise _Leaderless(sorted(leaderless))

    def _gather(self, futures: Mapping[K, Future[V]], timeout_s: float) -> dict[K, V]:
        answers: dict[K, V] = {}
        for key, future in futures.items():
            try:
                answers[key] = future.result(timeout_s + ANSWER_MARGIN_S)
            except FutureTimeout as error:
                raise _TryAgain("no answer") from error
            except KafkaException as error:
                raise _Failed(key, error.args[0]) from error
        return answers

    def _ask(self, what: str, request: Callable[[float], V]) -> V:
        """Ask until there is an answer, or one that is final, or the deadline has passed."""
        retrying = Retrying(
            retry=retry_if_exception_type(_TryAgain),
            stop=stop_after_delay(self._timeout_s) | stop_after_attempt(ATTEMPTS_MAX),
            wait=wait_exponential(0.1, max=2.0),
            reraise=True,
        )
        try:
            answer: V = retrying(self._attempt, what, request, time.monotonic())
            return answer
        except _Leaderless as error:
            raise SourceUnavailable(
                f"The Kafka brokers at {self._servers} did not {what} within {self._timeout_s:.0f} s: {error}"
            ) from error
        except _TryAgain as error:
            raise SourceUnavailable(
                f"The Kafka broker at {self._servers} did not {what} within {self._timeout_s:.0f} s:"
                f" {error}. Check that it is up and that source.bootstrap_servers names it."
            ) from error

    def _attempt(self, what: str, request: Callable[[float], V], started_s: float) -> V:
        asked_for_s = time.monotonic() - started_s
        self._last_error = None
        try:
            return request(max(1.0, min(ATTEMPT_TIMEOUT_S, self._timeout_s - asked_for_s)))
        except _Failed as error:
            self._raise(what, error.key, error.error, asked_for_s)
        except KafkaException as error:
            self._raise(what, "", error.args[0], asked_for_s)
        except _Leaderless:
            raise  # which connection failed meanwhile says less
        except _TryAgain as error:
            self._raise_connection_refused(what)
            raise _TryAgain(self._why(str(error))) from error
        finally:
            self._admin.poll(0)

    def _raise(self, what: str, key: object, error: KafkaError, asked_for_s: float) -> NoReturn:
        code = error.code()
        self._raise_connection_refused(what)
        if code in _REFUSED_ACCESS:
            raise Unauthorized(
                f"The Kafka broker at {self._servers} does not let these credentials {what}: {error.str()}."
                " Correct the credentials in source.kafka, or the broker's access lists."
            )
        if code in (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_MEMBER_ID):
            raise _NoGroup(error.str())
        missing = code in _MISSING
        if missing and asked_for_s >= min(MISSING_GRACE_S, self._timeout_s):
            place = f"{key.topic}:{key.partition}" if isinstance(key, TopicPartition) else str(key)
            raise MissingTopic(
                f"Source topic {place} does not exist on the Kafka broker at {self._servers}:"
                " create it, or correct source.topics."
            )
        if code in _RETRIED or code in _NO_LEADER or missing or error.retriable():
            raise _TryAgain(self._why(error.str()))
        raise SourceRefused(f"The Kafka broker at {self._servers} refused to {what}: {error.str()}.")

    def _raise_connection_refused(self, what: str) -> None:
        """Wrong credentials show only as a connection that never comes up; the reason is told on the side."""
        self._admin.poll(0)
        last = self._last_error
        if last is not None and last.code() in _CONNECTION_REFUSED:
            raise Unauthorized(
                f"The Kafka broker at {self._servers} refuses the connection to {what}: {last.str()}."
                " Check the credentials and the security settings in source.kafka."
            )

    def _why(self, reason: str) -> str:
        return reason if self._last_error is None else self._last_error.str()

    def _on_error(self, error: KafkaError) -> None:
        if self._last_error is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error


class _Failed(Exception):
    """Kafka's answer for one part of a question is an error."""

    def __init__(self, key: object, error: KafkaError) -> None:
        super().__init__(error.str())
        self.key = key
        self.error = error


class _TryAgain(Exception):
    """An attempt that may be repeated while there is time."""


class _Leaderless(_TryAgain):
    """Source partitions that are there and that no broker leads."""

    def __init__(self, partitions: Sequence[SourcePartition]) -> None:
        first = partitions[0]
        super().__init__(
            f"no broker leads {'source partition' if len(partitions) == 1 else 'source partitions'} "
            f"{some(partitions)}: those that hold their replicas are away. Bring one of them back "
            f"(kafka-topics.sh --describe --topic {first.topic} --unavailable-partitions says which)."
        )


class _NoGroup(Exception):
    """The consumer group does not exist."""
