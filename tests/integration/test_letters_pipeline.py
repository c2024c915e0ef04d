"""Dead letters of a whole pipeline: set aside by a run, tried, sent back, rows of the next run, each once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness import SCHEMA, Pipeline, event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

NARROW = SCHEMA.replace("user_id BIGINT", "user_id INT")
LARGE = 2**40


def test_what_a_run_set_aside_is_a_row_of_the_next_once_the_schema_is_mended_and_it_was_sent_back(
    pipeline: Pipeline,
) -> None:
    def letters(*options: str) -> list[Any]:
        done = pipeline.command("dead-letters", "--output", "json", *options)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    narrow, wide = ("--set", f"record.schema={NARROW}"), ("--set", f"record.schema={SCHEMA}")
    assert NARROW != SCHEMA
    pipeline.settings |= {"record.on_error": "dead_letter", "record.schema": NARROW}
    pipeline.produce(500)
    bad = [
        event(number).replace(b'"user_id":0', b'"user_id":%d' % LARGE)
        for number in range(1_000, 4_000, 1_000)
    ]
    pipeline.produce_raw([*bad, b"no json"], partition=2)
    pipeline.produce(500)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(1_000)

    *shown, _ = letters(*narrow)
    assert [one["now"]["row"] for one in shown] == [False] * 4
    *tried, _ = letters(*narrow, "--schema", SCHEMA)
    assert [one["now"]["row"] for one in tried] == [True, True, True, False]
    *_, told = letters(*wide, "--replay", "--mended", "--execute", "--why", "user_id is wider now")
    assert (told["summary"]["sent"], told["summary"]["left_out"]) == (3, 1)

    pipeline.settings["record.schema"] = SCHEMA
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(1_003)
    [left, told] = letters(*wide, "--replay")
    assert (left["offset"], told["summary"]["sent_back_before"]) == (shown[3]["offset"], 3)
