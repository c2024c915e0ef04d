"""How a worker's end is told."""

from __future__ import annotations

import pytest

from participant.worker.spec import Ended
from table.faults import WorkerFault


@pytest.mark.parametrize("fault", WorkerFault)
def test_an_end_reads_as_it_was_written(fault: WorkerFault) -> None:
    ended = Ended(slot=3, incarnation="ab", reason="no space left", failed=True, fault=fault)
    read = Ended.from_json(ended.to_json())
    assert read == ended and read.fault is fault


def test_all_but_its_own_faults_are_waited_out() -> None:
    assert [fault for fault in WorkerFault if not fault.is_outage] == [WorkerFault.PIPELINE]
