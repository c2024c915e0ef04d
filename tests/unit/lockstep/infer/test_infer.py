"""From values to the columns that they would go into."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from lockstep.infer.columns import Proposal, proposed
from lockstep.infer.report import Inferred
from lockstep.infer.sample import Sample
from lockstep.infer.shapes import DEPTH_MAX, FIELDS_MAX, NAMES_MAX, Shape, together
from lockstep.infer.trial import Verdict, tried
from participant.records.json.values import parse
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.unit.lockstep.config.test_config import config_of


def shape_of(*values: Any) -> Shape:
    shape = Shape()
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value)
        shape.add(parse(text.encode("utf-8", "surrogatepass")))
    return shape


def of(*values: Any) -> Proposal:
    found = proposed(shape_of(*values))
    if found.columns:
        parse_ddl(found.ddl)
    return found


def batches(*values: Any) -> list[RawBatch]:
    texts = [json.dumps(value).encode() for value in values]
    numbers = np.arange(len(texts), dtype=np.int64)
    return [
        RawBatch(
            partition=SourcePartition("t", 0),
            offsets=numbers,
            timestamps_ms=numbers,
            values=Values.of(texts),
        )
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2147483648"], "BIGINT"),
        (["-9223372036854775808"], "BIGINT"),
        (["9223372036854775808"], "DECIMAL(38,0)"),
        (["1", "1.5"], "DOUBLE"),
        (["1", "1e3"], "DOUBLE"),
        (["1", "2", '"NaN"'], "DOUBLE"),
        (['"NaN"', '"Infinity"', "1"], "DOUBLE"),
        (['"NaN"', '"Infinity"'], "STRING"),
        (["1" * 39], "DOUBLE"),
        (["9" * 30, "0.5"], "DOUBLE"),
        (["true", "null", "false"], "BOOLEAN"),
        (['"a"', '""'], "STRING"),
        (['"2026-01-02"'], "DATE"),
        (['"2026-01-02"', '"2026-02-30"'], "STRING"),
        (['"2026-01-02T03:04:05Z"', '"2026-01-02"'], "TIMESTAMP"),
        (['"2026-01-02T03:04:05"'], "TIMESTAMP_NTZ"),
        (['"2026-01-02T03:04:05"', '"2026-01-02T03:04:05+01:00"'], "TIMESTAMP"),
        (['"2026-01-02T03:04:05.1234567Z"'], "STRING"),
        (['"2026-01-02"', '"soon"'], "STRING"),
        (["[1,2]", "[]", "[null]"], "ARRAY<BIGINT>"),
        (["[]"], "ARRAY<STRING>"),
        (['[[{"a":1}],[]]'], "ARRAY<ARRAY<STRUCT<a: BIGINT>>>"),
        (['{"x":1}', '{"y":"t"}'], "STRUCT<x: BIGINT, y: STRING>"),
        (['{"x-y":1}', '{"z":2}'], "MAP<STRING, BIGINT>"),
        (["{}"], "MAP<STRING, STRING>"),
    ],
)
def test_a_column_takes_every_value_that_was_seen_and_no_type_is_narrower(
    values: list[str], kind: str
) -> None:
    documents = [f'{{"a":{value}}}' for value in values]
    found = of(*documents)
    assert found.columns == {"a": kind}
    verdict = tried(config_of(), Proposal(columns={**found.columns, "b": "INT"}), batches())
    assert not verdict.refused
    given = [
        RawBatch(
            partition=SourcePartition("t", 0),
            offsets=np.arange(len(documents)),
            timestamps_ms=np.arange(len(documents)),
            values=Values.of([text.encode() for text in documents]),
        )
    ]
    verdict = tried(config_of(), Proposal(columns={**found.columns, "b": "INT"}), given)
    assert (verdict.rows, verdict.rejects) == (len(values), 0)


def test_an_object_of_many_rare_names_is_a_map_and_one_of_few_names_a_struct() -> None:
    found = of(*[{"m": {f"k{n}": n}, "s": {"k": n, f"o{n % 3}": n}} for n in range(50)])
    assert found.columns == {
        "m": "MAP<STRING, BIGINT>",
        "s": "STRUCT<k: BIGINT, o0: BIGINT, o1: BIGINT, o2: BIGINT>",
    }


def test_a_field_that_can_be_no_column_gets_another_name() -> None:
    value = {
        "user-id": 1,
        "a.b`c": 2,
        "_hoodie_x": 3,
        "_kafka_x": 3,
        "Id": 4,
        "id": 5,
        "1": 6,
        "": 7,
        "é": 8,
        "n\0": 9,
        "\udc00": 0,
    }
    found = of(value)
    assert found.columns == dict.fromkeys(
        ["user_id", "a_b_c", "hoodie_x", "Id", "id_2", "field_1", "field"], "BIGINT"
    )
    assert found.sources == {
        "user_id": "value.user-id",
        "a_b_c": "value.`a.b``c`",
        "hoodie_x": "value._hoodie_x",
        "id_2": "value.id",
        "field_1": "value.1",
        "field": "value.`é`",
    }
    del value["\udc00"]  # which makes a reject
    verdict = tried(config_of(), found, batches(value))
    assert (verdict.refused, verdict.rows, verdict.rejects) == ("", 1, 0)
    for name in ("", "_kafka_x", "n\0", "\udc00"):
        assert (
            f"a field {name!r} is not read under that name, but by record.rest: it is left out" in found.notes
        )


def test_what_no_type_takes_is_said_and_counted_as_rejects() -> None:
    values = [{"a": n if n % 10 else "text", "b": None} for n in range(100)]
    found = of(*values)
    assert found.columns == {"a": "BIGINT"}
    assert found.notes == [
        "a: mostly number, but 10 are STRING: rejects",
        "b: only null was seen, so it is left out",
    ]
    verdict = tried(config_of(), found, batches(*values))
    assert (verdict.rows, verdict.rejects) == (90, 10)
    assert dict(verdict.reasons) == {"field a: not a BIGINT but a string": 10}


def test_what_grows_without_bounds_is_not_kept() -> None:
    shape = shape_of(*[{f"k{n}_{m}": m for m in range(100)} for n in range(NAMES_MAX // 50)])
    assert len(shape.fields) == NAMES_MAX and shape.unnamed == NAMES_MAX
    deep = shape_of('{"a":' * (DEPTH_MAX + 5) + "1" + "}" * (DEPTH_MAX + 5))
    assert proposed(deep).columns["a"].count("STRUCT") <= DEPTH_MAX
    parse_ddl(proposed(deep).ddl)


def test_fields_within_others_are_bounded_in_all_and_those_at_the_top_are_seen_all_the_same() -> None:
    documents = [
        {f"o{n}": {f"k{at}_{n}_{m}": 1 for m in range(20)} for n in range(100)} | {f"top{at}": at}
        for at in range(2 * FIELDS_MAX // 2_000)
    ]
    shape = shape_of(*documents)
    assert sum(len(one.fields) for one in shape.fields.values()) == FIELDS_MAX
    assert f"top{len(documents) - 1}" in shape.fields
    note = f"{FIELDS_MAX:,} fields within others were not looked at: there are too many names in all"
    assert note in proposed(shape).notes


def test_shapes_are_put_together_as_if_all_had_been_seen_in_one_place() -> None:
    values = [{"a": {"b": [n, None], "c": {"d": f"{n}.5"}}, f"x{n % 3}": [{"y": n}, []]} for n in range(9)]
    assert together([shape_of(one) for one in values]) == shape_of(*values)


def test_what_is_shown_holds_no_content_and_can_be_pasted() -> None:
    shape = shape_of(
        {"name": "Quokka", "n": 4711, "m": {f"Quokka-{n}": 1 for n in range(3)}, "user-id": "Quokka"},
        '{"n":1,"n":2}',
    )
    proposal = proposed(shape)
    found = Inferred(
        topics=("events",),
        sample=Sample(records=2, size_bytes=100, source_partitions=1),
        shape=shape,
        without_value=1,
        no_objects={"not a JSON object but an array": 1},
        proposal=proposal,
        verdict=Verdict(rows=1, rejects=1),
    )
    text, document = found.to_text(), json.dumps(found.to_json())
    assert "Quokka" not in text + document and "4711" not in text + document
    pasted = tomllib.loads(text)["record"]
    assert parse_ddl(pasted["schema"]) == parse_ddl(
        "name STRING, n BIGINT, m MAP<STRING, BIGINT>, user_id STRING"
    )
    assert pasted["columns"] == {"user_id": "value.user-id"}
    assert config_of({"record.schema": pasted["schema"], "record.columns": pasted["columns"]})
    (name, *_) = found.to_json()["fields"]
    assert name == {
        "field": "name",
        "seen": 1,
        "missing": 1,
        "null": 0,
        "types": {"STRING": 1},
        "example": "a text of length 6",
    }
    assert "# 1 fields were there twice in one record, which is then a reject." in text


def test_records_that_are_no_rows_at_all_propose_nothing() -> None:
    assert of().columns == {} and of({}).columns == {}


@pytest.mark.parametrize(
    ("values", "kind", "note"),
    [
        (["12.50", "-3", "1024.5"], "DOUBLE", "DECIMAL(18,2) keeps each digit"),
        (
            ['"12.50"', '"0.1"'],
            "STRING",
            "texts of numbers, at most 2 digits before the point and",
        ),
        (["0.123456789012345"], "DOUBLE", "DECIMAL(38,15)"),
        (["1e3", "1.5"], "DOUBLE", ""),
        (["1", "2"], "BIGINT", ""),
        (['"1"', '"2"'], "STRING", ""),
        (['"007.5"', '"1.5"'], "STRING", ""),
        (['"1.5"', '"n/a"'], "STRING", ""),
        (["0." + "1" * 40], "DOUBLE", ""),
    ],
)
def test_a_decimal_is_a_choice_that_is_told_and_never_proposed(
    values: list[str], kind: str, note: str
) -> None:
    found = proposed(shape_of(*(f'{{"a": {value}}}' for value in values)))
    assert found.columns == {"a": kind}
    assert [note in one for one in found.notes] == ([True] if note else [])
