"""A registry that is reset while a worker decodes, and one that is asked for thousands of ids."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from participant.records.errors import SchemasPending, SchemasUnavailable
from participant.records.port import Decoded, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.records.registry import client as asking
from participant.records.registry import session as sessions
from participant.records.registry.ahead import QuestionsAhead
from participant.records.registry.client import RegistryClient
from participant.records.registry.settings import RegistrySettings
from participant.source.fetcher import BATCH_RECORDS
from participant.worker.checked import CheckedDecoder
from participant.worker.stages import decoder
from table.port import INSERT, TableSpec
from table.schema import table_schema
from tests.harness import await_that
from tests.registry_server import ERROR, HANG, WELL, Registry

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
DDL = "payer STRING, payee STRING"


def schema(*names: str) -> str:
    return json.dumps(
        {"type": "record", "name": "Pay", "fields": [{"name": one, "type": "string"} for one in names]}
    )


def batch(partition: SourcePartition, first: int, *numbers: int) -> RawBatch:
    """Records by the schemas of these ids, each of the texts a and b."""
    offsets = np.arange(first, first + len(numbers), dtype=np.int64)
    values = [b"\0" + number.to_bytes(4, "big") + b"\x02a\x02b" for number in numbers]
    return RawBatch(partition=partition, offsets=offsets, timestamps_ms=offsets, values=Values.of(values))


class Clock:
    """Seconds, which pass when they are told to."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def settings(registry: Registry, tmp_path: Path) -> RegistrySettings:
    return RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))


def worker(settings: RegistrySettings, record: RecordSpec | None = None) -> CheckedDecoder:
    record = replace(record or RecordSpec(format="avro"), registry=settings)
    spec = TableSpec(path="", name="t", mode=INSERT, ddl=DDL)
    made = decoder(spec, table_schema(DDL, kafka_columns=False), record)
    assert isinstance(made, CheckedDecoder)
    made._session.now_s = Clock()
    return made


def reset(registry: Registry, *texts: str) -> None:
    """Ids are counted from 1 again."""
    registry.known.texts.clear()
    registry.known.subjects.clear()
    for at, text in enumerate(texts):
        registry.known.register(f"s{at}", {"schema": text})


@pytest.mark.parametrize("follows", ["ignore", "evolve"])
@pytest.mark.parametrize("reads", ["auto", "plain"])
def test_a_registry_that_is_reset_stops_the_worker_which_names_the_offsets_that_may_be_wrong(
    registry: Registry, settings: RegistrySettings, reads: str, follows: str
) -> None:
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings, RecordSpec(format="avro", decoder=reads, on_schema_change=follows))
    assert one.decode(batch(P0, 10, 1, 1)).table.to_pylist() == [{"payer": "a", "payee": "b"}] * 2
    one._session.recheck()
    assert not one._session.reset
    one.decode(batch(P0, 12, 1))
    one._session.recheck()
    reset(registry, schema("payee", "payer"))
    one.decode(batch(P0, 13, 1, 1, 1))
    one.decode(batch(P1, 70, 1))
    one._session.now_s.now_s += 20  # type: ignore[attr-defined]
    one._session.recheck()
    found = one.decode(batch(P0, 16, 1))
    assert found.stop is not None and found.stop[0] == 0
    why = found.stop[1]
    assert why.startswith("the schema registry has another schema 1 than it had 20 s ago: it was reset")
    assert "4 records at most" in why
    assert "Offsets: events:0 13 to 15, events:1 70 to 70" in why


def test_a_reset_is_detected_within_a_minute() -> None:
    assert 3 * sessions.RECHECK_S < 60


def test_what_is_read_again_after_a_reset_counts_from_where_it_is_read_again(
    registry: Registry, settings: RegistrySettings
) -> None:
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings)
    one.decode(batch(P0, 10, 1, 1, 1))
    one._session.recheck()
    reset(registry, schema("payee", "payer"))
    one.decode(batch(P0, 11, 1))
    one._session.recheck()
    assert "Offsets: events:0 11 to 11" in one._session.reset


def test_a_registry_that_is_silent_or_has_deleted_a_schema_is_not_reset(
    registry: Registry, settings: RegistrySettings
) -> None:
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings)
    one.decode(batch(P0, 10, 1))
    registry.does = HANG
    one._session.recheck()
    registry.does = WELL
    registry.known.gone.add(1)
    one.decode(batch(P0, 11, 1))
    one._session.recheck()
    registry.known.gone.clear()
    reset(registry, schema("payee", "payer"))
    one.decode(batch(P0, 12, 1))
    one._session.recheck()
    assert "Offsets: events:0 10 to 12" in one._session.reset, "what was not confirmed counts"


def test_a_schema_that_is_spelled_otherwise_is_the_same(
    registry: Registry, settings: RegistrySettings
) -> None:
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings)
    one.decode(batch(P0, 10, 1))
    reset(registry, schema("payer", "payee").replace(" ", "  "))
    one._session.recheck()
    assert not one._session.reset


def test_an_idle_worker_asks_nothing_and_each_round_asks_for_few(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "RECHECKED_MAX", 3)
    for number in range(7):
        registry.known.register("s", {"schema": schema("payer", "payee", f"more{number}")})
    names = [b"\0" + number.to_bytes(4, "big") + b"\x02a\x02b\x02c" for number in range(1, 8)]
    one = worker(settings)
    raw = replace(batch(P0, 0, *range(1, 8)), values=Values.of(names))
    one.decode(raw)
    asked = []
    for _ in range(3):
        registry.asked.clear()
        one._session.recheck()
        asked.append(len(registry.asked))
    assert asked == [3, 0, 0], "nothing was decoded since"
    seen = set()
    for _ in range(3):
        registry.asked.clear()
        one.decode(raw)
        one._session.now_s.now_s += 1  # type: ignore[attr-defined]
        one._session.recheck()
        seen.update(registry.asked)
    assert len(seen) >= 5, "those that were confirmed longest ago come first"


def test_ids_that_are_unknown_take_no_more_than_the_budget_of_a_batch_and_come_to_an_end(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question each, in the thread that writes: a thousand records of five bytes took 25 s."""
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings)
    one._session.ask_ahead.clear()
    clock = one._session.now_s
    asked: list[int] = []

    def slow(_client: asking.RegistryClient, key: int, **_more: object) -> tuple[str, ...]:
        asked.append(key)
        clock.now_s += 0.05  # type: ignore[attr-defined]
        raise asking.NoSuchSchema("the registry does not know it")

    monkeypatch.setattr(asking.RegistryClient, "schema", slow)
    raw = batch(P0, 0, *range(1_000, 1_100))
    attempts = 0
    while True:
        before, before_s = len(asked), clock()
        try:
            found = one.decode(raw)
            break
        except SchemasPending as why:
            assert "new schemas" in str(why)
        assert len(asked) - before <= sessions.QUESTIONS_S / 0.05 + 1
        assert clock() - before_s <= sessions.QUESTIONS_S + 0.1
        clock.now_s += 0.5  # type: ignore[attr-defined]
        attempts += 1
        assert attempts < 100
    assert len(found.rejects) == 100 and sorted(asked) == list(range(1_000, 1_100)), "each once"
    assert attempts > 4


def test_ids_that_are_unknown_are_asked_for_ahead_several_at_once_and_each_once(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings)
    monkeypatch.setattr(sessions, "QUESTIONS_S", 0.0)
    raw = batch(P0, 0, 1, *range(1_000, 1_050))

    def decoded() -> Decoded | None:
        try:
            return one.decode(raw)
        except SchemasPending:
            return None

    found = await_that("answers to all questions", decoded)
    assert found.table.num_rows == 1 and len(found.rejects) == 50
    assert all("the registry does not know it" in reject.reason for reject in found.rejects)
    assert len(registry.asked) == len(set(registry.asked)) == 51


def test_a_registry_that_does_not_answer_is_asked_as_ever_for_what_was_asked_ahead(
    registry: Registry, settings: RegistrySettings
) -> None:
    ahead = QuestionsAhead(lambda: RegistryClient(settings).schema)
    registry.does = ERROR
    ahead.want([1])
    with pytest.raises(SchemasPending):
        ahead.take(1)

    def answered() -> bool:
        return ahead._answers[1] is not None

    await_that("answer", answered)
    assert ahead.take(1) is None and ahead.take(1) is None


def test_a_batch_of_known_schemas_is_read_while_another_waits_for_the_registry(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.known.register("s", {"schema": schema("payer", "payee")})
    one = worker(settings)
    one.decode(batch(P1, 0, 1))
    monkeypatch.setattr(sessions, "QUESTIONS_S", 0.0)
    with pytest.raises(SchemasPending):
        one.decode(batch(P0, 0, 7))
    assert one.decode(batch(P1, 1, 1)).table.num_rows == 1


def test_more_unknown_ids_are_remembered_than_a_batch_has_records() -> None:
    """Else a batch that is tried again would begin from the start, for ever."""
    assert asking.UNKNOWN_MAX >= 2 * BATCH_RECORDS
    assert issubclass(SchemasPending, SchemasUnavailable)
