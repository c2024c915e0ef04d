"""Whether Spark has room for the workers: each takes a slot for good, and Hudi's own jobs need one more."""

from __future__ import annotations

import logging
import time

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lockstep.errors import ConfigError
from lockstep.launch.submit import is_local

log = logging.getLogger("lockstep.run")

EXECUTORS_S = 60.0
"""Executors of a cluster register one after the other, some time after the driver is up."""
POLL_S = 0.2
UNLIMITED = 1_000_000
"""With dynamic allocation executors come when there is work for them."""

ADDRESS_SPACE = "spark.executor.pyspark.memory"


def check_slots(spark: SparkSession, workers: int) -> str:
    """Return a phrase about Spark's slots.

    Refuses too few slots for workers and Hudi's own jobs, speculation, and a limit of the workers' address
    space.

    Executors of a cluster are waited for. With dynamic allocation they come when there is work for them, so
    that nothing can be said before.
    """
    context, needed = spark.sparkContext, workers + 1
    if context.getConf().get("spark.speculation", "false").lower() == "true":
        raise ConfigError(
            "spark.speculation is on and would run a worker twice: start with --conf spark.speculation=false."
        )
    if limit := context.getConf().get(ADDRESS_SPACE, ""):
        raise ConfigError(
            f"{ADDRESS_SPACE} = {limit} limits the address space of Python workers, of which librdkafka and "
            "Arrow reserve more than they use: the process would be aborted in the middle of a transaction. "
            "Leave it out: memory.per_worker bounds a worker's memory, and a cluster reserves it by "
            "spark.executor.memoryOverhead."
        )
    if _is_dynamic(context):
        return "dynamic allocation: executors come when there is work for them"
    slots = _slots(context)
    if slots < needed and not is_local(context.master):
        slots = _wait(context, needed)
    if slots < needed:
        raise ConfigError(
            f"Spark has {slots} slots ({context.master}); pipeline.workers = {workers} takes {workers} of "
            f"them for good and Hudi's own jobs need one more: give it {needed} (for instance "
            f"--master local[{needed}]) or lower pipeline.workers."
        )
    return f"{slots} slots for {workers} workers and Hudi's own jobs"


def free_slots(spark: SparkSession, workers: int) -> int:
    """How many tasks Hudi's own jobs may run at once and never take the place of a worker; at least 1."""
    context = spark.sparkContext
    if _is_dynamic(context):
        return UNLIMITED
    return max(1, _slots(context) - workers)


def _is_dynamic(context: SparkContext) -> bool:
    return context.getConf().get("spark.dynamicAllocation.enabled", "false").lower() == "true"


def _wait(context: SparkContext, needed: int) -> int:
    log.info("waiting for executors: %d slots are needed", needed)
    until = time.monotonic() + EXECUTORS_S
    while (slots := _slots(context)) < needed and time.monotonic() < until:
        time.sleep(POLL_S)
    return slots


def _slots(context: SparkContext) -> int:
    """Tasks that can run at once on the executors that are registered now."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))
