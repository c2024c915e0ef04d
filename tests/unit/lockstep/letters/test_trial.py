"""Letters decoded as a worker would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control_topic.messages import SourcePartition
from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.letters.letter import Letter
from lockstep.letters.trial import UNANSWERED_MAX, Trial, Verdict
from tests.avro_types import record, written
from tests.registry_server import ERROR, Registry
from tests.unit.lockstep.letters.made import letter


def config(*, schema: str = "id BIGINT NOT NULL, amount DOUBLE", **table: Any) -> Config:
    record = {"schema": schema} | {name: table.pop(name) for name in ("envelope",) if name in table}
    return from_mapping(
        {
            "pipeline": {"id": "p"},
            "source": {"bootstrap_servers": "b:1", "topics": ["events"]},
            "record": record,
            "table": {"path": "file:///t", "name": "t", **table},
        }
    )


def test_each_letter_has_its_own_verdict_whatever_their_order() -> None:
    letters = [
        letter(30, value=b'{"id": 3, "amount": 0.5}'),
        letter(10, value=b'{"id": "x"}'),
        letter(5, value=b'{"id": 5}', partition=SourcePartition("events", 1)),
        letter(20, value=b"no json"),
        letter(11, value=b'{"id": 1}'),
    ]
    first, wrong, other, broken, last = Trial(config()).verdicts(letters)
    assert first == Verdict(row={"id": 3, "amount": 0.5})
    assert other == Verdict(row={"id": 5, "amount": None})
    assert last == Verdict(row={"id": 1, "amount": None})
    assert not wrong.is_row and "id" in wrong.reason
    assert not broken.is_row and "no json" not in broken.reason
    assert Trial(config()).verdicts([]) == []


def test_another_schema_makes_a_row_of_what_was_none() -> None:
    odd = [letter(value=b'{"id": "x"}')]
    assert not Trial(config()).verdicts(odd)[0].is_row
    assert Trial(config(schema="id STRING")).verdicts(odd) == [Verdict(row={"id": "x"})]


def test_a_record_without_a_value_deletes_by_its_key_where_rows_are_upserts() -> None:
    upserts = Trial(config(kind="upsert", key=["id"]))
    gone, nameless, row = upserts.verdicts(
        [letter(1, value=None, key=b"7"), letter(2, value=None, key=None), letter(3, value=b'{"id": 1}')]
    )
    assert gone == Verdict(deletes=True)
    assert not nameless.is_row
    assert row.row == {"id": 1, "amount": None} and not row.deletes
    assert not Trial(config()).verdicts([letter(value=None)])[0].is_row


def test_a_delete_field_says_that_a_row_goes() -> None:
    upserts = Trial(config(schema="id BIGINT, gone BOOLEAN", kind="upsert", key=["id"], delete_field="gone"))
    assert upserts.verdicts([letter(value=b'{"id": 1, "gone": true}')])[0].deletes


def test_a_registry_that_is_away_keeps_no_letter_from_being_shown(registry: Registry, tmp_path: Path) -> None:
    """Nor is it asked about each of many; of what it told before, the verdict is as ever."""
    text = record({"id": "long"})
    known = registry.known.register("events-value", {"schema": text})
    asked = from_mapping(
        {
            "pipeline": {"id": "p"},
            "source": {"bootstrap_servers": "b:1", "topics": ["events"]},
            "record": {"schema": "id BIGINT", "format": "avro"},
            "registry": {"url": registry.url, "timeout": "1s", "cache_folder": str(tmp_path)},
            "table": {"path": "file:///t", "name": "t"},
        }
    )

    def letters(*schemas: int) -> list[Letter]:
        datum = written(text, {"id": 7})
        return [letter(n, value=b"\0" + of.to_bytes(4, "big") + datum) for n, of in enumerate(schemas)]

    assert Trial(asked).verdicts(letters(known)) == [Verdict(row={"id": 7})]
    registry.does = ERROR
    before = len(registry.asked)
    row, *untold = Trial(asked).verdicts(letters(known, *range(100, 120)))
    assert row == Verdict(row={"id": 7})
    assert {one.reason for one in untold} == {
        f"that cannot be told now: the schema registry at {registry.url} answers with an error (503)"
    }
    assert len(registry.asked) - before <= 2 * (2 + UNANSWERED_MAX)


@pytest.mark.parametrize("positions", [(2, 1), (1, 2)])
def test_change_events_are_tried_each_by_itself_where_their_order_would_stop_a_worker(
    positions: tuple[int, int],
) -> None:
    events = [
        b'{"op":"c","before":null,"after":{"id":%d},"source":{"connector":"mysql","file":"bin.%06d","pos":4,"row":0}}'
        % (place, at)
        for place, at in enumerate(positions)
    ]
    changes = Trial(config(envelope="debezium", kind="upsert", key=["id"]))
    found = changes.verdicts([letter(place, value=event) for place, event in enumerate(events)])
    assert [one.reason for one in found] == ["", ""]
    assert [one.row["id"] for one in found if one.row is not None] == [0, 1]


def test_what_a_record_has_beside_its_value_is_looked_at_as_by_a_worker() -> None:
    asked = config(schema="id BIGINT, k STRING, h STRING")
    columns = {"k": "key", "h": "header.h"}
    asked = asked.model_copy(update={"record": asked.record.model_copy(update={"columns": columns})})
    sent = (("h", b"1"), ("h", b"2"))
    row, broken = Trial(asked).verdicts(
        [
            letter(1, value=b'{"id": 1}', key=b"a", headers=sent),
            letter(2, value=b'{"id": 2}', key=b"b", headers=sent, note="none could be read"),
        ]
    )
    assert row == Verdict(row={"id": 1, "k": "a", "h": "2"})
    assert broken.reason == "column h, from header.h: a BINARY that is no STRING"
