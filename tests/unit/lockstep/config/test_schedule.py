"""When transactions end by the clock, as the configuration takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lockstep.config.load import from_json, from_mapping, overlaid
from lockstep.config.model import Config
from lockstep.config.problems import InvalidConfiguration
from lockstep.config.tuning import objection, tuning_of


def config_of(**transaction: object) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": "event_id STRING, day STRING"},
            "table": {"path": "file:///lake/t", "name": "t", "key": ["event_id"], "partition_by": "day"},
            "transaction": transaction,
        }
    )


def test_nothing_ends_by_the_clock_unless_it_is_asked_for() -> None:
    transaction = config_of().transaction
    assert (transaction.schedule, transaction.align_ms, transaction.zone) == ("", 0, "UTC")
    assert transaction.interval_ms == 10_000


@pytest.mark.parametrize(
    ("schedule", "interval_ms"),
    [
        ("every 1h at :00", 7_200_000),
        ("*/5 * * * *", 600_000),
        ("every 1d at 03:30", 86_400_000),
        ("0 3 * * SUN", 86_400_000),
    ],
)
def test_who_gives_a_schedule_and_no_interval_means_the_schedule(schedule: str, interval_ms: int) -> None:
    assert config_of(schedule=schedule).transaction.interval_ms == interval_ms


def test_an_interval_that_is_given_stands_beside_the_schedule() -> None:
    assert (
        config_of(schedule="every 1h", interval="5m", write_timeout="1m").transaction.interval_ms == 300_000
    )


def test_what_is_given_comes_through_json_and_other_layers_as_it_is() -> None:
    config = config_of(schedule="  every   1h at :00 ", align="6h", zone="Europe/Berlin")
    assert config.transaction.schedule == "every 1h at :00"
    assert from_json(config.to_json()) == config
    assert overlaid(config, ["transaction.align=0"]).transaction.align_ms == 0


def test_a_run_with_a_schedule_takes_other_settings() -> None:
    config = config_of(schedule="every 1h")
    assert objection(config, tuning_of(config)) == ""


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"schedule": "", "interval_ms": 10_000}, ""),
        ({"schedule": "*/5 * * * *", "align_ms": 3_600_000}, ""),
        ({"schedule": "hourly"}, "transaction.schedule: 'hourly' has not cron's five fields"),
        ({"align_ms": 7 * 3_600_000}, "transaction.align: '7h': it does not divide a day"),
        ({"align_ms": 5_000}, "transaction.align: '5s' is out of bounds"),
        ({"schedule": ""}, "transaction.write_timeout: 1m is shorter than transaction.interval (2h)"),
    ],
)
def test_what_operators_set_of_the_clock_is_looked_at_as_the_configuration_is(
    wanted: dict[str, Any], sentence: str
) -> None:
    config = config_of(schedule="every 1h")
    assert objection(config, replace(tuning_of(config), **wanted)).startswith(sentence)
    assert bool(objection(config, replace(tuning_of(config), **wanted))) == bool(sentence)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"schedule": "hourly"}, "transaction.schedule: 'hourly' has not cron's five fields"),
        ({"schedule": "every 7m"}, "transaction.schedule: 7m does not divide a day"),
        ({"schedule": "every 500ms"}, "transaction.schedule: 'every 500ms' is not understood"),
        ({"align": "7h"}, "transaction.align: '7h': it does not divide a day"),
        ({"align": "48h"}, "transaction.align: '48h' is out of bounds"),
        ({"align": "5s"}, "transaction.align: '5s' is out of bounds"),
        ({"align": 1}, "transaction.align: 1 has no unit"),
        ({"zone": "Berlin"}, "transaction.zone: 'Berlin' is not a zone"),
        ({"schedule": "every 1h", "interval": "48h"}, "transaction.interval: 48h is out of bounds"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(**given)
    assert sentence in str(caught.value)
