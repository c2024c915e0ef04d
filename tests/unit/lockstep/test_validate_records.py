"""Test verdicts on a sample of records in `lockstep validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.infer.trial import Tally
from lockstep.validate_records import count_values, describe
from participant.records.raw import RawBatch, Values
from participant.worker.stages import decoder
from table.partition_columns import columns_of


def config_of(**record: str) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events", "workers": 1},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
            "record": {"schema": "id BIGINT, city STRING", **record},
            "table": {"path": "file:///nothing/yet", "name": "t"},
        }
    )


def tally_of(config: Config, values: Sequence[bytes | None], first: int = 100) -> Tally:
    count = len(values)
    batch = RawBatch(
        partition=SourcePartition("events", 2),
        offsets=np.arange(first, first + count, dtype=np.int64),
        timestamps_ms=np.zeros(count, dtype=np.int64),
        values=Values.of(values),
        keys={place: None for place, value in enumerate(values) if value is None},
    )
    spec, tally = config.table_spec(), Tally()
    count_values(decoder(spec, columns_of(spec), config.record_spec()), batch, tally)
    return tally


def test_tombstones_are_not_counted() -> None:
    tally = tally_of(config_of(), [None, b'{"id":1}', None, b"no json"])
    assert (tally.records, tally.rejects, tally.first_reject) == (2, 1, "events:2@103")


@pytest.mark.parametrize(
    ("values", "verdict", "detail"),
    [
        ([], "ok", "the newest offsets hold no record with a value"),
        ([None], "ok", "the newest offsets hold no record with a value"),
        ([b'{"id":1}'], "ok", "1 of the newest records are rows"),
        (
            [b'{"id":1}', b"x", b'{"ID":2}'],
            "warning",
            "2 of 3 of the newest records are no rows",
        ),
        ([b'{"ID":1}', b'{"ID":2}'], "failed", "2 of 2 of the newest records are no rows"),
    ],
)
def test_a_sample_without_a_row_fails(values: Sequence[bytes | None], verdict: str, detail: str) -> None:
    config = config_of()
    found = describe(config, tally_of(config, values))
    assert found.verdict == verdict and found.detail.startswith(detail)


@pytest.mark.parametrize(
    ("on_error", "effect"), [("fail", "A run halts at such"), ("dead_letter", "to the dead-letter topic")]
)
def test_a_reject_states_its_effect(on_error: str, effect: str) -> None:
    config = config_of(on_error=on_error)
    assert effect in describe(config, tally_of(config, [b"x"])).detail


def test_the_most_frequent_reason_is_shown() -> None:
    tally = Tally(records=5, rejects=3, reasons=Counter({"a": 1, "b": 2}), first_reject="events:0@7")
    found = describe(config_of(), tally)
    assert found.detail.startswith(
        "3 of 5 of the newest records are no rows, the first at events:0@7: b (2 times)"
    )


def test_a_record_that_halts_every_run_is_named() -> None:
    found = describe(config_of(), Tally(records=1, halt="events:0@7: op t"))
    assert (found.verdict, found.detail) == ("warning", "a run halts at events:0@7: op t")
