"""PySpark's server for accumulators' updates, which a run has no use for and cannot do without.

Where the JVM is ended, or ends a task, while it speaks to that server, the rest of what it says is missing,
and `socketserver` prints a stack trace onto the operator's terminal. It means nothing: no accumulator is
ours.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from pyspark import SparkContext

log = logging.getLogger("lockstep.run")


def no_trace_of_accumulators(context: SparkContext) -> None:
    """From here on it is one line for whoever looks for it. The server goes on as it would."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = _say


def _say(_request: Any, address: Any) -> None:
    """As `socketserver.BaseServer.handle_error`, which is called while the error is handled."""
    log.debug("an update of Spark's accumulators from %s broke off: %s", address, sys.exc_info()[1])
