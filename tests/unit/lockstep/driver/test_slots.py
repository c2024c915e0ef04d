"""A slot has a worker again whatever its last one, or the start of the next, ended with."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError

from lockstep.driver.slots import Slot, _cause
from participant.worker.spec import Ended

SPARK_SAYS = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Traceback (most recent call last):
ModuleNotFoundError: No module named 'fastavro'.

\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally(SparkErrorUtils.scala:64)
\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally$(SparkErrorUtils.scala:61)
"""


class Context:
    """Of Spark, what a slot asks for: it fails as it does where the temporary folder is gone, or full."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def setJobGroup(self, *_: object, **__: object) -> None:
        """Nothing to do."""

    def parallelize(self, *_: object) -> Any:
        raise self.errors.pop(0)


class Spec:
    pipeline, run = "p", "run"


@pytest.mark.parametrize(
    "error", [FileNotFoundError("no such folder"), OSError(28, "No space left on device"), Py4JError("x")]
)
def test_a_worker_that_could_not_be_started_is_one_that_died_and_the_slot_goes_on(error: Exception) -> None:
    died: list[Ended] = []

    def note(ended: Ended) -> None:
        died.append(ended)
        if len(died) == 2:
            slot.end()

    context: Any = Context(error, error)
    spec: Any = Spec()
    slot = Slot(context, spec, 3, log_level="INFO", died=note)
    slot.start()
    assert slot.join(10)
    assert [(one.slot, one.failed, one.reason) for one in died] == [(3, True, str(error))] * 2


def test_what_nobody_has_thought_of_does_not_end_a_slot_either() -> None:
    died: list[Ended] = []

    def note(ended: Ended) -> None:
        died.append(ended)
        slot.end()

    context: Any = Context(KeyError("what"))
    spec: Any = Spec()
    slot = Slot(context, spec, 3, log_level="INFO", died=note)
    slot.start()
    assert slot.join(10)
    assert [one.reason for one in died] == ["KeyError('what')"]


def test_the_cause_is_what_python_said_and_no_stack_frame() -> None:
    assert _cause(Py4JError(SPARK_SAYS)) == "ModuleNotFoundError: No module named 'fastavro'."
