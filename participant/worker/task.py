"""The function that Spark runs on an executor: one worker, for as long as it lives."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from control_topic.logs import JSON, log_strays, write_lines
from participant.worker.shared import unshared
from participant.worker.spec import Ended, WorkerSpec


def run_task(spec: WorkerSpec, slot: int, log_level: str, first: bool, _rows: Iterator[int]) -> Iterator[str]:
    """One JSON document: how the worker ended (`participant.worker.spec.Ended`). `first`: of its slot, which
    looks whether it has the driver's table at all; what goes away later is an outage, and may come back.

    A task that Spark itself retries ends at once: restarting is the supervisor's, one incarnation a job.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        yield Ended(slot=slot, incarnation="", reason="a retry by Spark", failed=True).to_json()
        return
    write_lines(
        log_level, form=spec.log_format, worker=f"worker-{slot}", pipeline=spec.pipeline, run=spec.run
    )
    if spec.log_format == JSON:
        log_strays()
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from participant.worker.worker import Worker

    if first and (why := unshared(spec.layout, spec.storage, spec.pipeline)):
        yield Ended(slot=slot, incarnation="", reason=why, failed=True, elsewhere=True).to_json()
        return
    try:
        ended = Worker(spec, slot).run()
    except Exception as error:
        logging.getLogger("lockstep.worker").debug("where the worker failed", exc_info=True)
        reason = f"{type(error).__name__}: {error}"
        ended = Ended(slot=slot, incarnation="", reason=reason, failed=True)
    yield ended.to_json()
