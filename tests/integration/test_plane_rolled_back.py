"""A worker's files that the driver's rollback removes before the worker has heard of the abort.

That is the usual order: ABORT is said once the rollback is done, and a rollback removes what markers name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from participant import events as ev
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Plane
from participant.worker.stages import stages
from table.faults import WorkerFault
from table.port import TableLayout
from tests.harness import await_that
from tests.integration.planes import NOBODY, PARTITION, consumed

pytestmark = pytest.mark.integration
COUNT = 130_000
"""More than a row group: its file is begun before the flush."""


@pytest.fixture
def posted() -> list[Any]:
    return []


@pytest.fixture(params=["insert", "upsert"])
def plane(request: pytest.FixtureRequest, tmp_path: Path, posted: list[Any]) -> Iterator[Plane]:
    (tmp_path / ".hoodie").mkdir()
    layout = TableLayout(
        kind="hudi",
        path=str(tmp_path),
        key_fields=("id",),
        partition_fields=(),
        kafka_columns=False,
        target_file_bytes=1 << 30,
        ddl="id STRING",
        mode=request.param,
        body={"bucket_count": 1} if request.param == "upsert" else {},
    )
    plane = Plane(
        stages=stages(layout=layout, slot=0, incarnation="i", memory=MemoryBudget(64_000_000)),
        queued_bytes_max=8_000_000,
        dead_letters=None,
        post=posted.append,
        now_ms=lambda: 0,
        callbacks=NOBODY,
    )
    plane.start()
    yield plane
    assert plane.stop(30)


def test_a_worker_whose_files_are_rolled_back_under_it_is_no_storage_that_failed(
    plane: Plane, posted: list[Any], tmp_path: Path
) -> None:
    plane.order(ev.Rewind(partition=PARTITION, offset=0, generation=1))
    assert plane.deliver(consumed(0, [b'{"id": "%d"}' % number for number in range(COUNT)]))
    await_that("rows", lambda: any(isinstance(one, ev.Buffered) for one in posted))
    plane.order(ev.Open(transaction="t1", instant="20260101000000000"))
    plane.order(ev.Write(transaction="t1", partition=PARTITION, generation=1, upto=COUNT))
    (begun,) = await_that(
        "a file that is begun", lambda: list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".*.log*"))
    )
    begun.unlink()  # the rollback: another worker of the transaction has died
    plane.order(ev.Flush(call=1, transaction="t1"))
    answer = await_that("answer", lambda: next((one for one in posted if isinstance(one, ev.Flushed)), None))
    plane.order(ev.Discard(transaction="t1"))  # ABORT_COMMIT comes, a moment later
    assert answer.outcome is not ev.Outcome.UNKNOWN, answer.reason  # UNKNOWN ends this worker, a healthy one
    assert plane.fault is WorkerFault.PIPELINE, plane.fault
