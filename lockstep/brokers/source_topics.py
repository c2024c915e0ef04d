"""What is asked of the Kafka broker about the source topics: who they are, what they hold, who reads them.

Answers are facts at one moment. How they are asked for, and for how long: `lockstep.brokers.questions`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, ListOffsetsResultInfo, OffsetSpec

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.brokers.group import OFFSETS_TOPIC, GroupMember, GroupView, why_no_coordinator
from lockstep.brokers.questions import (
    ATTEMPT_TIMEOUT_S,
    MISSING,
    NO_LEADER,
    PROPERTIES_REFUSED,
    Failed,
    Leaderless,
    NoGroup,
    Questions,
    TryAgain,
    gather,
)
from table.service.source_facts import (
    NoCoordinator,
    SourceFacts,
    SourceRefused,
    SourceTopicsError,
    SourceUnavailable,
)

_client_log = logging.getLogger(f"{__name__}.librdkafka")

TIMEOUT_S = 30.0
LOOK_S = 2.0
"""For metadata, which any broker that is there has at hand."""
PARTITIONS_PER_REQUEST_MAX = 1_000
GROUP_TIMEOUT_S = 3_600.0
"""librdkafka's own for a question to a group's coordinator, the longest that it takes. Nobody waits so long:
see `SourceTopics._describe_group`."""
_NO_RECORD = -1
"""An answer to a question for a time that no record has reached."""
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class SourceTopics:
    """The source topics as the broker sees them. May be used from several threads.

    `kafka`: librdkafka properties with secrets resolved. `timeout_s`: the most that one question may take.
    Every method raises `SourceTopicsError`. `keeps_consumer`: for one thread that asks for a group's offsets
    again and again, until `close`.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        topics: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        keeps_consumer: bool = False,
    ) -> None:
        self._topics = tuple(topics)
        self._questions = Questions(kafka, timeout_s=timeout_s)
        self._admin = self._questions.admin
        self._group_admin: AdminClient | None = None
        self._keeps_consumer = keeps_consumer
        self._kept: tuple[str, Consumer] | None = None

    def close(self) -> None:
        """Let go of the consumer that was kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[1].close()

    def facts(self) -> SourceFacts:
        """Who the cluster and its topics are. Raises `MissingTopic` where one does not exist."""
        # AdminClient.describe_cluster ends the process (an assertion of librdkafka 2.16.0) where the answer
        # names no broker, as of a cluster that has fenced them all.
        cluster = self._questions.ask(
            "describe the cluster", lambda s: self._admin.list_topics(self._topics[0], timeout=s)
        )
        wanted = TopicCollection(list(self._topics))
        described = self._questions.ask(
            f"describe source topic {', '.join(self._topics)}",
            lambda s: gather(self._admin.describe_topics(wanted, request_timeout=s), s),
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

    def at_time(self, partitions: Sequence[SourcePartition], time_ms: int) -> Offsets:
        """The first offset whose record is of this time or later; absent where there is none yet.

        By the records' own timestamps, which are their producers' where the topic does not say otherwise.
        """
        found = self._list_offsets(
            partitions, OffsetSpec.for_timestamp(time_ms), IsolationLevel.READ_UNCOMMITTED, may_miss=True
        )
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def group_offsets(self, group: str, partitions: Sequence[SourcePartition] | None = None) -> Offsets:
        """What the consumer group committed; partitions without a commit are absent.

        `partitions`: of which, by default all of the source topics. The group is not joined.
        """
        asked = self.facts().partitions if partitions is None else partitions
        places = [TopicPartition(p.topic, p.number) for p in asked]
        # AdminClient.list_consumer_group_offsets would need no consumer, and ends the process (SIGSEGV,
        # librdkafka 2.16.0) while the group's coordinator is still loading.
        consumer = self._consumer(group)
        try:
            answer = self._questions.ask(
                f"tell the offsets of consumer group {group}", lambda s: consumer.committed(places, s)
            )
        except SourceTopicsError:
            self.close()  # the next question has a new one
            raise
        finally:
            if self._kept is None:
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
            described = self._questions.ask(
                f"describe consumer group {group}", partial(self._describe_group, group)
            )
        except NoGroup:
            return GroupView(state="DEAD", members=())
        except SourceUnavailable as error:
            why = self._why_no_coordinator(group)
            if not why:
                raise
            raise NoCoordinator(
                f"The Kafka broker at {self._questions.servers} answers, and consumer group {group} "
                f"has no coordinator: {why}. No worker can join the group before it has one."
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

    def _consumer(self, group: str) -> Consumer:
        if self._kept is not None and self._kept[0] == group:
            return self._kept[1]
        self.close()
        properties = {**self._questions.properties, "group.id": group, "enable.auto.commit": False}
        try:
            consumer = Consumer(properties, logger=_client_log)
        except KafkaException as error:
            raise SourceRefused(PROPERTIES_REFUSED) from error
        if self._keeps_consumer:
            self._kept = (group, consumer)
        return consumer

    def _describe_group(self, group: str, timeout_s: float) -> dict[str, ConsumerGroupDescription]:
        """With a client of its own, which is let go together with a question that nobody answers.

        A question to a coordinator that is away, whose own time runs out, ends the process as soon as the
        coordinator is back (an assertion on memory that was freed; librdkafka 2.16.0).
        """
        admin = self._group_admin or self._questions.another_admin()
        self._group_admin = admin
        answers = admin.describe_consumer_groups([group], request_timeout=GROUP_TIMEOUT_S)
        try:
            return gather(answers, timeout_s)
        except TryAgain:
            admin.poll(0)  # why it cannot connect, where that is said
            self._group_admin = None
            del admin  # else the error that is raised here keeps it
            raise

    def _why_no_coordinator(self, group: str) -> str:
        """Empty where the broker does not answer at all, or does not say."""
        try:
            seen = self._admin.list_topics(
                OFFSETS_TOPIC, timeout=min(ATTEMPT_TIMEOUT_S, self._questions.timeout_s)
            )
        except KafkaException:
            return ""
        topic = seen.topics.get(OFFSETS_TOPIC)
        if topic is None or topic.error is not None:
            if topic is not None and topic.error is not None and topic.error.code() not in MISSING:
                return topic.error.str()
            return why_no_coordinator(group, {}, len(seen.brokers))
        leaders = {number: one.leader for number, one in topic.partitions.items()}
        return why_no_coordinator(group, leaders, len(seen.brokers))

    def _list_offsets(
        self,
        partitions: Sequence[SourcePartition],
        spec: OffsetSpec,
        level: IsolationLevel,
        *,
        may_miss: bool = False,
    ) -> Offsets:
        offsets: dict[SourcePartition, int] = {}
        for begin in range(0, len(partitions), PARTITIONS_PER_REQUEST_MAX):
            chunk = partitions[begin : begin + PARTITIONS_PER_REQUEST_MAX]
            request = {TopicPartition(p.topic, p.number): spec for p in chunk}
            names = ", ".join(sorted({p.topic for p in chunk}))
            answer = self._questions.ask(
                f"list the offsets of source topic {names}",
                partial(self._offsets_once, request, level, _NO_RECORD if may_miss else 0),
            )
            offsets.update({SourcePartition(p.topic, p.partition): a.offset for p, a in answer.items()})
        return offsets

    def _offsets_once(
        self,
        request: dict[TopicPartition, OffsetSpec],
        level: IsolationLevel,
        lowest: int,
        timeout_s: float,
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        asked = self._admin.list_offsets(request, isolation_level=level, request_timeout=timeout_s)
        try:
            answers = gather(asked, timeout_s)
        except Failed as error:
            if error.error.code() in NO_LEADER:
                self._look_for_leaders(request)
            raise
        # Where one leader answers and another does not, librdkafka (2.16.0) gives the latter's as -1001, and
        # no error.
        unanswered = [place for place, answer in answers.items() if answer.offset < lowest]
        if unanswered:
            self._look_for_leaders(unanswered)
            places = sorted(SourcePartition(place.topic, place.partition) for place in unanswered)
            raise TryAgain(f"the broker that leads {some(places, shown_max=1)} does not answer")
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
                raise Failed(place.topic, topic.error)
            if place.partition not in topic.partitions:
                raise Failed(place, KafkaError(KafkaError._UNKNOWN_PARTITION))
            if topic.partitions[place.partition].leader < 0:
                leaderless.append(SourcePartition(place.topic, place.partition))
        if leaderless:
            raise Leaderless(sorted(leaderless))
