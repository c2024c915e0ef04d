"""Dead letters on a real broker: shown, tried, and sent back once at most, whoever is killed and whoever else
tries.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from control_topic.messages import SourcePartition
from lockstep import cli
from lockstep.brokers.local import Broker
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.errors import EXIT_FAILED, EXIT_WELL, Failed
from lockstep.letters import replay as replay_module
from lockstep.letters import transactions
from lockstep.letters import walk as walk_module
from lockstep.letters.marks import Marks, mark_topic
from lockstep.letters.reading import Broker as Read
from lockstep.letters.reading import read_batches
from lockstep.letters.replay import How, Replay
from lockstep.letters.report import Outcome, Seen
from participant.records import headers
from participant.records.raw import RawBatch, Values
from participant.records.rejects import HeldRejects, Rejects
from participant.source.dead_letters import DeadLetters
from tests.broker_fixture import create_topic, set_config
from tests.integration.letters_process import BY, LETTERS, AllRejected, walk
from tests.transactions import await_markers

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0
KEPT = {"retention.ms": "-1"}
"""Letters of these tests are of a time that topics remove otherwise, within seconds."""
TIME_MS = 1_700_000_000_000
HEADERS: list[headers.Header] = [("trace", b"\x00\xff"), ("trace", None), ("", b""), ("ünicode", b"x" * 300)]
RECORDS: list[tuple[bytes | None, bytes | None, list[headers.Header]]] = [
    (b"k1", b"not json", HEADERS),
    (None, b"no key", []),
    (b"tombstone's", None, []),
    (b"", b"", []),
]
"""Key, value, headers."""


@pytest.fixture
def kafka(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def config(broker: Broker, make_topic: Callable[..., str]) -> Config:
    """Of a pipeline of one topic with three source partitions; its dead-letter topic is there, and empty."""
    topic = make_topic(partitions=3, config=KEPT)
    create_topic(broker.bootstrap_servers, f"{topic}.dlq", config=KEPT)
    return config_of(broker, topic)


def config_of(broker: Broker, *topics: str, **record: Any) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "p"},
            "source": {"bootstrap_servers": broker.bootstrap_servers, "topics": list(topics)},
            "record": {"schema": "id BIGINT", "on_error": "dead_letter", **record},
            "table": {"path": "file:///t", "name": "t"},
        }
    )


def set_aside(
    kafka: dict[str, str],
    topic: str,
    records: Sequence[tuple[bytes | None, bytes | None, list[headers.Header]]],
    *,
    number: int = 0,
    first: int = 0,
    dead: str = "",
) -> None:
    """As a worker does."""
    offsets = np.arange(first, first + len(records), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition(topic, number),
        offsets=offsets,
        timestamps_ms=offsets + TIME_MS,
        values=Values.of([value for _, value, _ in records]),
        record_keys=Values.of([key for key, _, _ in records]),
        headers=Values.of([headers.pack(own) for _, _, own in records]),
    )
    with closing(DeadLetters(kafka, dead, bytes_max=1 << 20)) as letters:
        letters.send([rejected(batch)])


def rejected(batch: RawBatch) -> HeldRejects:
    """All of it."""
    reasons = dict.fromkeys(range(len(batch)), "field id")
    return HeldRejects.of(batch, Rejects.of(reasons, batch.offsets))


def numbered(count: int) -> list[tuple[bytes | None, bytes | None, list[headers.Header]]]:
    return [(None, b'{"id": "%d"}' % number, []) for number in range(count)]


def held_by(kafka: dict[str, str], topic: str) -> list[Message]:
    """All that a reader of committed records finds there, once no transaction is open."""
    await_markers(topic, kafka)
    source = SourceTopics(kafka, [topic])
    places = source.facts().partitions
    ends = {place: end for place, end in source.end(places).items() if end}
    found: list[Message] = []
    settings = {
        **kafka,
        "group.id": "reader",
        "enable.partition.eof": True,
        "enable.auto.commit": False,  # a group with offsets is a reader that a replay refuses
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(place.topic, place.number, 0) for place in ends])
        deadline = time.monotonic() + DEADLINE_S
        while ends:
            assert time.monotonic() < deadline, ends
            message = consumer.poll(0.2)
            if message is None:
                continue
            place = SourcePartition(message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= ends.get(place, 0):
                ends.pop(place, None)
    return found


def replayed(config: Config, how: How | None = None, **asked: Any) -> list[Seen]:
    return list(walk(config, **asked).replayed(BY, how or How()))


def run(config: Config, step: str = "", number: int = 1) -> int:
    """A replay in a process of its own; how it ended."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.letters_process", step, str(number)],
        input=config.to_json().encode(),
        cwd=ROOT,
        capture_output=True,
        timeout=4 * DEADLINE_S,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


@pytest.mark.parametrize("reader", ["native", "plain"])
def test_a_record_goes_back_as_it_was_to_its_own_source_partition(
    kafka: dict[str, str], config: Config, reader: str
) -> None:
    [topic] = config.source.topics
    config = config.model_copy(update={"source": config.source.model_copy(update={"reader": reader})})
    set_aside(kafka, topic, RECORDS, number=2, first=7)
    seen = replayed(config)
    found = held_by(kafka, topic)
    assert len(seen) == len(found) == len(RECORDS)
    for place, (message, one, (key, value, own)) in enumerate(zip(found, seen, RECORDS, strict=True)):
        assert (message.key(), message.value(), message.headers() or []) == (key, value, own)
        assert (message.partition(), message.timestamp()[1]) == (2, TIME_MS + 7 + place)
        assert one.went is not None
        assert (one.went.number, one.went.offset) == (message.partition(), message.offset())


def test_what_the_run_sets_aside_of_a_record_that_came_back_is_the_letter_that_it_was(
    kafka: dict[str, str], config: Config
) -> None:
    """Nothing of ours is left in it that would make the next letter another one."""
    [topic] = config.source.topics
    set_aside(kafka, topic, RECORDS, first=100)
    [*first] = replayed(config)
    await_markers(topic, kafka)
    source = Read(kafka=kafka, group="reader")
    for batch in read_batches(source, [topic]):
        with closing(DeadLetters(kafka, "", bytes_max=1 << 20)) as letters:
            letters.send([rejected(batch)])
    second = replayed(config)
    assert [(one.letter.key, one.letter.value, one.letter.headers) for one in first] == [
        (one.letter.key, one.letter.value, one.letter.headers) for one in second
    ]


def test_a_letter_goes_back_once_however_often_it_was_set_aside_and_is_asked_for(
    kafka: dict[str, str], config: Config
) -> None:
    [topic] = config.source.topics
    for _ in range(3):  # by three workers, as aborted transactions are
        set_aside(kafka, topic, numbered(10))
    assert len(replayed(config, limit=4)) == 4
    assert len(replayed(config)) == 6
    assert replayed(config) == []
    set_aside(kafka, topic, numbered(12))
    assert len(replayed(config)) == 2
    assert Counter(message.value() for message in held_by(kafka, topic)) == {
        value: 1 for _, value, _ in numbered(12)
    }


@pytest.mark.parametrize("step", ["begin", "_records", "_marks", "_commit"])
def test_a_replay_that_is_killed_at_any_step_and_begun_again_sends_each_letter_once(
    kafka: dict[str, str], config: Config, step: str
) -> None:
    [topic] = config.source.topics
    count = 3 * LETTERS + 1
    set_aside(kafka, topic, numbered(count), number=1)
    assert run(config, step, 1 if step == "begin" else 2) == -signal.SIGKILL
    assert run(config) == 0
    assert Counter(message.value() for message in held_by(kafka, topic)) == {
        value: 1 for _, value, _ in numbered(count)
    }
    assert len(held_by(kafka, mark_topic(f"{topic}.dlq"))) == count


def test_who_begins_ends_who_was_at_it_and_each_letter_goes_back_once(
    kafka: dict[str, str], config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "TRANSACTION_LETTERS_MAX", 2)
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(9))
    first = walk(config).replayed(BY, How())
    next(first)
    assert len(replayed(config)) == 7
    with pytest.raises(Failed, match=r"Another replay of .* has begun .*2 were sent before; begin again"):
        list(first)
    assert Counter(message.value() for message in held_by(kafka, topic)) == {
        value: 1 for _, value, _ in numbered(9)
    }


def test_who_reads_marks_has_ended_before_whoever_might_still_mark(
    kafka: dict[str, str], config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "TRANSACTION_LETTERS_MAX", 2)
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(6))
    first, right = walk(config).replayed(BY, How()), walk_module.read_marks
    next(first)

    def read_and_let_the_other_go_on(*asked: Any) -> Marks:
        marks = right(*asked)
        with suppress(Failed):
            list(first)
        return marks

    monkeypatch.setattr(walk_module, "read_marks", read_and_let_the_other_go_on)
    replayed(config)
    assert Counter(message.value() for message in held_by(kafka, topic)) == {
        value: 1 for _, value, _ in numbered(6)
    }


def test_what_somebody_has_open_is_aborted_by_who_begins(kafka: dict[str, str], config: Config) -> None:
    """Marks are read behind that: what was open is neither there nor marked."""
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(3))
    [*letters] = [seen.letter for seen in walk(config).planned(How())]
    walk(config)._topics.ensure_marks(f"{topic}.dlq", make=True)
    with closing(Replay(kafka, f"{topic}.dlq", BY)) as other:
        other.begin()
        other._producer.begin_transaction()
        other._marks(letters, other._records(letters))
        assert len(replayed(config)) == 3
        with pytest.raises(Failed, match="Another replay"):
            other._commit(letters)
    assert Counter(message.value() for message in held_by(kafka, topic)) == {
        value: 1 for _, value, _ in numbered(3)
    }


def test_where_the_broker_does_not_answer_the_outcome_is_not_known_and_the_next_replay_finds_it_out(
    kafka: dict[str, str], broker: Broker, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(3))
    right = Replay._marks

    def marks_and_silence(*given: Any) -> None:
        right(*given)
        broker.pause()

    with monkeypatch.context() as patched:
        patched.setattr(replay_module, "COMMIT_S", 3.0)
        patched.setattr(Replay, "_marks", marks_and_silence)
        try:
            with pytest.raises(
                Failed, match=r"Whether .*:0@0 and 2 more went back .* is not known.*begin again"
            ):
                replayed(config)
        finally:
            broker.resume()
    replayed(config)
    assert Counter(message.value() for message in held_by(kafka, topic)) == {
        value: 1 for _, value, _ in numbered(3)
    }


def test_a_record_that_its_topic_does_not_take_is_named_and_nothing_of_its_transaction_is_sent(
    kafka: dict[str, str], config: Config
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(2))
    set_aside(kafka, topic, numbered(1), number=7, first=40)
    with pytest.raises(Failed, match=rf"{topic}:7@40 is not taken by its source topic.*begin again"):
        replayed(config)
    assert held_by(kafka, topic) == []
    assert len(replayed(config, how=How(by_key=True))) == 3


def test_small_records_go_back_to_a_topic_that_takes_no_large_batch(
    kafka: dict[str, str], broker: Broker, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(config={"max.message.bytes": "20000", **KEPT})
    create_topic(broker.bootstrap_servers, f"{topic}.dlq", config=KEPT)
    noise = np.random.default_rng(7)
    set_aside(kafka, topic, [(None, noise.bytes(1_000), []) for _ in range(200)])
    assert len(replayed(config_of(broker, topic))) == len(held_by(kafka, topic)) == 200


def test_a_record_that_cannot_be_sent_as_it_was_stays_and_is_told(
    kafka: dict[str, str], config: Config
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, [(None, b"odd", [("\udcff", b"v")]), *numbered(1)])
    odd, sent = sorted(replayed(config), key=lambda seen: seen.letter.offset)
    assert "no UTF-8" in odd.why_not_sent and odd.went is None
    assert sent.went is not None
    assert [message.value() for message in held_by(kafka, topic)] == [sent.letter.value]


def test_the_key_may_choose_the_source_partition_and_the_record_may_be_of_now(
    kafka: dict[str, str], config: Config
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, [(b"key-%d" % number, b"{}", []) for number in range(30)])
    replayed(config, how=How(by_key=True, new_time=True))
    found = held_by(kafka, topic)
    assert {message.partition() for message in found} == {0, 1, 2}
    assert all(message.timestamp()[1] > TIME_MS + 10**9 for message in found)


def test_a_topic_of_marks_that_may_lose_them_is_refused(
    kafka: dict[str, str], broker: Broker, config: Config
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(1))
    create_topic(broker.bootstrap_servers, mark_topic(f"{topic}.dlq"))
    with pytest.raises(Failed, match=r"may lose it \(cleanup\.policy = delete\)"):
        replayed(config)
    assert held_by(kafka, topic) == []


def test_a_topic_of_marks_is_not_made_where_dead_letter_topics_are_not(
    kafka: dict[str, str], broker: Broker, config: Config
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(1))
    with pytest.raises(Failed, match=r"\.dlq\.replayed, which says what was sent back, does not exist"):
        replayed(config_of(broker, topic, dead_letter_partitions=0))


def test_letters_of_other_pipelines_in_the_same_topic_are_theirs(
    kafka: dict[str, str], broker: Broker, make_topic: Callable[..., str]
) -> None:
    ours, others, dead = make_topic(config=KEPT), make_topic(config=KEPT), make_topic()
    set_aside(kafka, ours, numbered(2), dead=dead)
    set_aside(kafka, others, numbered(3), dead=dead)
    assert len(replayed(config_of(broker, ours, dead_letter_topic=dead))) == 2
    assert held_by(kafka, others) == []
    assert len(replayed(config_of(broker, others, dead_letter_topic=dead))) == 3


@pytest.mark.parametrize("shows_by", ["offset", "member"])
def test_a_replay_is_refused_while_another_group_reads_the_topic_unless_it_is_named(
    kafka: dict[str, str], config: Config, shows_by: str
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(2))
    group = f"other-of-{topic}"
    settings = {**kafka, "group.id": group, "enable.auto.commit": False}
    with closing(Consumer(settings)) as consumer:
        if shows_by == "offset":
            consumer.commit(offsets=[TopicPartition(topic, 1, 0)], asynchronous=False)
        else:
            consumer.subscribe([topic])
            deadline = time.monotonic() + DEADLINE_S
            while not consumer.assignment():
                assert time.monotonic() < deadline
                consumer.poll(0.2)
        outcome = Outcome(replay=True)
        assert len(list(walk(config, outcome).planned(How()))) == 2
        assert len(outcome.warnings) == 1
        assert group in outcome.warnings[0] and f"--other-group {group}" in outcome.warnings[0]
        with pytest.raises(Failed, match=rf"Other consumer groups read .*{group}.*Nothing was sent"):
            replayed(config)
        assert held_by(kafka, topic) == []
        assert len(replayed(config, known_groups=frozenset({group}))) == 2


def test_the_pipelines_own_group_and_groups_of_other_topics_do_not_stop_a_replay(
    kafka: dict[str, str], config: Config, make_topic: Callable[..., str]
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(1))
    for group, read in ((config.group_id, topic), (f"elsewhere-{topic}", make_topic())):
        with closing(Consumer({**kafka, "group.id": group, "enable.auto.commit": False})) as consumer:
            consumer.commit(offsets=[TopicPartition(read, 0, 0)], asynchronous=False)
    assert len(replayed(config)) == 1


def test_who_follows_is_given_what_is_there_and_what_comes(kafka: dict[str, str], config: Config) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(1))
    following = walk(config).seen(follow=True)
    assert next(following).letter.offset == 0
    set_aside(kafka, topic, numbered(1), number=1, first=5)
    assert next(following).letter.name == f"{topic}:1@5"
    following.close()


# --- the command ----------------------------------------------------------------------------------


PIPELINE = """
[pipeline]
id = "p"
[source]
bootstrap_servers = "{servers}"
topics = ["{topic}"]
[record]
schema = "id BIGINT"
on_error = "dead_letter"
[table]
path = "file:///t"
name = "t"
"""


@pytest.fixture
def pipeline(config: Config, tmp_path: Path) -> Path:
    path, [topic] = tmp_path / "pipeline.toml", config.source.topics
    path.write_text(PIPELINE.format(servers=config.source.bootstrap_servers, topic=topic), encoding="utf-8")
    return path


def told(
    capsys: pytest.CaptureFixture[str], pipeline: Path, *options: str, code: int = EXIT_WELL
) -> list[Any]:
    """What the command says as JSON lines, the summary last."""
    ended = cli.run(["dead-letters", "-c", str(pipeline), "--output", "json", *options])
    captured = capsys.readouterr()
    assert ended == code, captured.err
    return [json.loads(line) for line in captured.out.splitlines()]


def test_the_command_shows_tries_and_sends_back_and_writes_nothing_before_it_is_to(
    kafka: dict[str, str],
    config: Config,
    pipeline: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walk_module, "read_committed", lambda config: AllRejected(config.source.topics))
    [topic] = config.source.topics
    set_aside(kafka, topic, [*numbered(2), (None, b'{"id": 5}', [])])
    stranger = Producer(kafka)
    stranger.produce(f"{topic}.dlq", b"somebody else's")
    assert stranger.flush(DEADLINE_S) == 0

    *letters, summary = told(capsys, pipeline)
    assert [one["now"]["row"] for one in letters] == [False, False, True]
    assert summary["summary"]["letters"] == 3 and summary["summary"]["unreadable"] == 1
    assert "value" not in letters[0]
    *_, summary = told(capsys, pipeline, "--schema", "id STRING NOT NULL", "--values")
    assert summary["summary"]["would_be_rows"] == 2
    [mended, _] = told(capsys, pipeline, "--replay", "--mended")
    assert (mended["offset"], mended["sent_back"]) == (2, None)
    assert told(capsys, pipeline, "--reason", "nothing like it")[0]["summary"]["letters"] == 0
    assert told(capsys, pipeline, "--since", "2020-01-01", "--record", f"{topic}:0=1")[0]["offset"] == 1
    assert held_by(kafka, topic) == []
    assert walk(config)._topics.there([mark_topic(f"{topic}.dlq")]) == []

    *_, summary = told(capsys, pipeline, "--replay", "--mended", "--execute", "--why", "ticket 4711")
    assert (summary["summary"]["sent"], summary["summary"]["left_out"]) == (1, 2)
    assert [message.value() for message in held_by(kafka, topic)] == [b'{"id": 5}']
    [mark] = held_by(kafka, mark_topic(f"{topic}.dlq"))
    assert json.loads(mark.value() or b"")["why"] == "ticket 4711"
    *letters, summary = told(capsys, pipeline)
    assert (len(letters), summary["summary"]["sent_back_before"]) == (2, 1)
    *letters, _ = told(capsys, pipeline, "--all")
    assert [one["sent_back"] is not None for one in letters] == [False, False, True]


def test_a_record_that_its_topic_would_remove_stays_unless_it_is_sent_as_one_of_now(
    kafka: dict[str, str], config: Config
) -> None:
    [topic] = config.source.topics
    set_config(config.source.bootstrap_servers, topic, {"retention.ms": "604800000"})
    set_aside(kafka, topic, numbered(1))
    [old] = replayed(config)
    assert old.went is None and "--new-time" in old.why_not_sent
    [sent] = replayed(config, how=How(new_time=True))
    assert sent.went is not None and len(held_by(kafka, topic)) == 1


def test_without_a_table_nothing_is_replayed(
    kafka: dict[str, str], config: Config, pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [topic] = config.source.topics
    set_aside(kafka, topic, numbered(1))
    assert cli.run(["dead-letters", "-c", str(pipeline), "--replay"]) == EXIT_FAILED
    assert "Only a commit proves that a record was rejected" in capsys.readouterr().err


def test_a_dead_letter_topic_that_is_not_there_is_named(
    broker: Broker, make_topic: Callable[..., str], capsys: pytest.CaptureFixture[str], pipeline: Path
) -> None:
    options = ["--set", "record.dead_letter_topic=nowhere"]
    assert cli.run(["dead-letters", "-c", str(pipeline), *options]) == EXIT_FAILED
    assert "The dead-letter topic nowhere does not exist" in capsys.readouterr().err
