"""Fixtures that tests of several folders share."""

import os

# Spark's JVM is forked from this process; gRPC's fork handlers, where it is in use already, break that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from tests.broker_fixture import broker, make_topic

__all__ = ["broker", "make_topic"]
