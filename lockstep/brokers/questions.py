"""How a Kafka broker is asked: again while there is time, and what is wrong then as a sentence.

Every question has a deadline and a bounded number of attempts. What Kafka calls an error becomes an outcome
here, and is asked again, or told as an error of `table.service.source_facts`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, NoReturn, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_exponential

from control_topic.messages import SourcePartition
from control_topic.spelling import some
from table.service.source_facts import MissingTopic, SourceRefused, SourceUnavailable, Unauthorized

_client_log = logging.getLogger(f"{__name__}.librdkafka")

PROPERTIES_REFUSED = (
    "librdkafka refuses the properties in source.kafka; `lockstep validate` names the wrong one."
)
"""Its own text may quote a value, and a value may be a secret."""
ATTEMPT_TIMEOUT_S = 10.0
ANSWER_MARGIN_S = 1.0
ATTEMPTS_MAX = 40
MISSING_GRACE_S = 3.0
"""A topic that was made a moment ago may still be unknown to the broker that is asked."""

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
MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
NO_LEADER = frozenset(
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


class Failed(Exception):
    """Kafka's answer for one part of a question is an error."""

    def __init__(self, key: object, error: KafkaError) -> None:
        super().__init__(error.str())
        self.key = key
        self.error = error


class TryAgain(Exception):
    """An attempt that may be repeated while there is time."""


class Leaderless(TryAgain):
    """Source partitions that are there and that no broker leads."""

    def __init__(self, partitions: Sequence[SourcePartition]) -> None:
        first = partitions[0]
        super().__init__(
            f"no broker leads {'source partition' if len(partitions) == 1 else 'source partitions'} "
            f"{some(partitions)}: those that hold their replicas are away. Bring one of them back "
            f"(kafka-topics.sh --describe --topic {first.topic} --unavailable-partitions says which)."
        )


class NoGroup(Exception):
    """The consumer group does not exist."""


def gather(futures: Mapping[K, Future[V]], timeout_s: float) -> dict[K, V]:
    """The answers to all parts of a question. Raises `Failed`, and `TryAgain` where none comes in time."""
    answers: dict[K, V] = {}
    for key, future in futures.items():
        try:
            answers[key] = future.result(timeout_s + ANSWER_MARGIN_S)
        except FutureTimeout as error:
            raise TryAgain("no answer") from error
        except KafkaException as error:
            raise Failed(key, error.args[0]) from error
    return answers


class Questions:
    """Asks one cluster. May be used from several threads.

    `kafka`: librdkafka properties with secrets resolved. `timeout_s`: the most that one question may take.
    Raises `SourceRefused` where librdkafka refuses the properties.
    """

    def __init__(self, kafka: Mapping[str, str], *, timeout_s: float) -> None:
        self.servers = kafka.get("bootstrap.servers", "")
        self.timeout_s = timeout_s
        self.properties: dict[str, Any] = {
            **kafka,
            "allow.auto.create.topics": False,
            "error_cb": self._on_error,
        }
        """For whoever needs a client of another kind: what goes wrong with it is heard here, too."""
        self._last_error: KafkaError | None = None
        try:
            self.admin = self.another_admin()
        except KafkaException as error:
            raise SourceRefused(PROPERTIES_REFUSED) from error

    def another_admin(self) -> AdminClient:
        """A client of the caller's own."""
        return AdminClient(self.properties, logger=_client_log)

    def ask(self, what: str, request: Callable[[float], V]) -> V:
        """Ask until there is an answer, or one that is final, or the deadline has passed.

        `what`: how "did not …" goes on. `request`: is given seconds, and may raise the outcomes above.
        Raises `SourceTopicsError`; `NoGroup` where that is the answer.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(TryAgain),
            stop=stop_after_delay(self.timeout_s) | stop_after_attempt(ATTEMPTS_MAX),
            wait=wait_exponential(0.1, max=2.0),
            reraise=True,
        )
        try:
            answer: V = retrying(self._attempt, what, request, time.monotonic())
            return answer
        except Leaderless as error:
            raise SourceUnavailable(
                f"The Kafka brokers at {self.servers} did not {what} within {self.timeout_s:.0f} s: {error}"
            ) from error
        except TryAgain as error:
            raise SourceUnavailable(
                f"The Kafka broker at {self.servers} did not {what} within {self.timeout_s:.0f} s:"
                f" {error}. Check that it is up and that source.bootstrap_servers names it."
            ) from error

    def _attempt(self, what: str, request: Callable[[float], V], started_s: float) -> V:
        asked_for_s = time.monotonic() - started_s
        self._last_error = None
        try:
            return request(max(1.0, min(ATTEMPT_TIMEOUT_S, self.timeout_s - asked_for_s)))
        except Failed as error:
            self._raise(what, error.key, error.error, asked_for_s)
        except KafkaException as error:
            self._raise(what, "", error.args[0], asked_for_s)
        except Leaderless:
            raise  # which connection failed meanwhile says less
        except TryAgain as error:
            self._raise_connection_refused(what)
            raise TryAgain(self._why(str(error))) from error
        finally:
            self.admin.poll(0)

    def _raise(self, what: str, key: object, error: KafkaError, asked_for_s: float) -> NoReturn:
        code = error.code()
        self._raise_connection_refused(what)
        if code in _REFUSED_ACCESS:
            raise Unauthorized(
                f"The Kafka broker at {self.servers} does not let these credentials {what}: {error.str()}."
                " Correct the credentials in source.kafka, or the broker's access lists."
            )
        if code in (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_MEMBER_ID):
            raise NoGroup(error.str())
        missing = code in MISSING
        if missing and asked_for_s >= min(MISSING_GRACE_S, self.timeout_s):
            place = f"{key.topic}:{key.partition}" if isinstance(key, TopicPartition) else str(key)
            raise MissingTopic(
                f"Source topic {place} does not exist on the Kafka broker at {self.servers}:"
                " create it, or correct source.topics."
            )
        if code in _RETRIED or code in NO_LEADER or missing or error.retriable():
            raise TryAgain(self._why(error.str()))
        raise SourceRefused(f"The Kafka broker at {self.servers} refused to {what}: {error.str()}.")

    def _raise_connection_refused(self, what: str) -> None:
        """Wrong credentials show only as a connection that never comes up; the reason is told on the side."""
        self.admin.poll(0)
        last = self._last_error
        if last is not None and last.code() in _CONNECTION_REFUSED:
            raise Unauthorized(
                f"The Kafka broker at {self.servers} refuses the connection to {what}: {last.str()}."
                " Check the credentials and the security settings in source.kafka."
            )

    def _why(self, reason: str) -> str:
        return reason if self._last_error is None else self._last_error.str()

    def _on_error(self, error: KafkaError) -> None:
        if self._last_error is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error
