"""Fixtures that tests of several folders share."""

import os
from collections.abc import Iterator

import pytest

# Spark's JVM is forked from this process; gRPC's fork handlers, where it is in use already, break that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from hypothesis import HealthCheck, settings

from tests.apicurio_fixture import apicurio
from tests.azure_fixture import azure
from tests.broker_fixture import broker, make_topic
from tests.gs_fixture import gs
from tests.hdfs_fixture import hdfs
from tests.hive_fixture import metastore
from tests.minio_server import CHOSEN, DIFFERS
from tests.own_logs import logs_of_its_own
from tests.s3_fixture import s3

# How long an example takes says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With MinIO for SeaweedFS, what is known to be otherwise there is not found out again."""
    if os.environ.get(CHOSEN) == "minio":
        for item in items:
            if why := DIFFERS.get(item.name) or DIFFERS.get(item.name.partition("[")[0]):
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """What a test sets of logs ends with it: a command that ran here would quieten all that come later."""
    with logs_of_its_own():
        yield


__all__ = ["apicurio", "azure", "broker", "gs", "hdfs", "logs", "make_topic", "metastore", "s3"]
