"""What a worker is told of the clock, and how its end is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from control_topic.controls import Tuning
from coordinator.times import ByTheClock, Every
from participant.worker.spec import Ended, WorkerSpec
from table.faults import WorkerFault

LAYOUT: Any = None
SPEC = WorkerSpec(
    pipeline="events",
    run="run-1",
    workers=1,
    kafka={},
    topics=("events",),
    control_topic="control",
    table_address="127.0.0.1:1",
    token="",
    key=b"k",
    layout=LAYOUT,
    interval_ms=1_000,
    write_timeout_ms=1_000,
    memory_bytes=1,
)


@pytest.mark.parametrize("fault", WorkerFault)
def test_an_end_reads_as_it_was_written(fault: WorkerFault) -> None:
    ended = Ended(slot=3, incarnation="ab", reason="no space left", failed=True, fault=fault)
    read = Ended.from_json(ended.to_json())
    assert read == ended and read.fault is fault


def test_all_but_its_own_faults_are_waited_out() -> None:
    assert [fault for fault in WorkerFault if not fault.is_outage] == [WorkerFault.PIPELINE]


def test_what_operators_set_of_schedule_and_alignment_goes_by_the_zone_of_the_configuration() -> None:
    spec = replace(SPEC, schedule="every 1h", zone="Europe/Berlin", align_ms=0)
    berlin = ZoneInfo("Europe/Berlin")
    tuning = Tuning(interval_ms=1, write_timeout_ms=1)
    hourly, daily = Every(3_600_000, 0, berlin), Every(86_400_000, 0, berlin)
    assert spec.by_the_clock(spec.tuning) == ByTheClock(schedule=hourly)
    assert spec.by_the_clock(tuning) == ByTheClock(schedule=hourly), "an older driver says nothing of it"
    assert spec.by_the_clock(replace(tuning, schedule="every 1d")) == ByTheClock(schedule=daily)
    aligned = replace(tuning, schedule="", align_ms=86_400_000)
    assert spec.by_the_clock(aligned) == ByTheClock(align=replace(daily, splits=True))
