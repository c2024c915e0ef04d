"""Few writers for a table partition, as the configuration takes it."""

from __future__ import annotations

import pytest

from coordinator.exchange import WORKERS_MAX
from lockstep.config.load import from_json, from_mapping
from lockstep.config.model import Config
from lockstep.config.problems import InvalidConfiguration
from lockstep.config.sections import TransactionSection


def config_of(
    writers: object, *, record: dict[str, object] | None = None, workers: int = 2, **table: object
) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events", "workers": workers},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": "event_id STRING, day STRING", **(record or {})},
            "registry": {"url": "http://127.0.0.1:8081"} if record else {},
            "table": {
                "path": "file:///lake/t",
                "name": "t",
                "key": ["event_id"],
                "partition_by": "day",
                **table,
            },
            "transaction": {"writers_per_partition": writers},
        }
    )


@pytest.mark.parametrize("given", [0, 1, 3, 1_000])
def test_as_many_writers_as_are_asked_for(given: int) -> None:
    config = config_of(given)
    assert config.transaction.writers_per_partition == given
    assert from_json(config.to_json()) == config


def test_as_many_workers_as_can_hand_rows_over_are_as_many_as_it_says() -> None:
    assert config_of(1, workers=WORKERS_MAX).pipeline.workers == WORKERS_MAX
    said = TransactionSection.model_fields["writers_per_partition"].description or ""
    assert f"at most {WORKERS_MAX} workers" in said


@pytest.mark.parametrize(
    ("writers", "more", "sentence"),
    [
        (-1, {}, "transaction.writers_per_partition"),
        (1_001, {}, "transaction.writers_per_partition"),
        (1, {"workers": 101}, "pipeline.workers is 101: at most 100 can; set it to 0"),
        (1, {"kind": "upsert"}, "it is for inserts (docs/exchange.md); set it to 0"),
        (1, {"partition_by": ""}, "the table has none: all rows would be theirs; set it to 0"),
        (1, {"record": {"format": "avro", "schema": ""}}, "let columns not follow schemas"),
    ],
)
def test_what_cannot_be_handed_over_is_refused_with_a_sentence(
    writers: int, more: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(writers, **more)  # type: ignore[arg-type]
    assert sentence in str(caught.value)


@pytest.mark.parametrize("more", [{"kind": "upsert"}, {"partition_by": ""}, {"workers": 101}])
def test_what_cannot_be_handed_over_is_no_matter_where_nobody_does(more: dict[str, object]) -> None:
    assert config_of(0, **more).transaction.writers_per_partition == 0  # type: ignore[arg-type]
