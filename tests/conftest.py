"""Fixtures that tests of several folders share."""

import os

# Spark's JVM is forked from this process; gRPC's fork handlers, where it is in use already, break that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from hypothesis import HealthCheck, settings

from tests.broker_fixture import broker, make_topic
from tests.gs_fixture import gs
from tests.hdfs_fixture import hdfs
from tests.s3_fixture import s3

# How long an example takes says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

__all__ = ["broker", "gs", "hdfs", "make_topic", "s3"]
