"""A table in S3 whose driver has no right to it but by a role that it assumes: real Spark, real Hudi, a
server that gives out roles. Python, Hadoop's connector and the table lock each assume it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.local import S3Server, role_arn, secret_of
from table.store.objects.settings import AssumedRole
from tests.integration import test_s3_table
from tests.integration.test_s3_table import Place, S3Driver
from tests.s3_fixture import ROLE
from tests.s3_proxy import S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
opened = test_s3_table.opened

ASKS = "stranger"
"""Who may nothing there, but assume the role."""
PROPERTIES = {"aws.accessKeyId": ASKS, "aws.secretKey": secret_of(ASKS)}
"""What Java's library looks at beside the variables that Python's does; those of a JVM that runs stay."""


@pytest.fixture
def place(spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ASKS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret_of(ASKS))
    jvm: Any = spark._jvm
    system = jvm.java.lang.System
    for name, value in PROPERTIES.items():
        system.setProperty(name, value)
    try:
        with S3Proxy(s3.port) as proxy:
            made = Place(s3, proxy)
            role = AssumedRole(arn=role_arn(ROLE), endpoint=s3.endpoint)
            made.settings = replace(made.settings, credentials=role)
            yield made
    finally:
        for name in PROPERTIES:
            system.clearProperty(name)


def test_a_table_is_begun_committed_and_read_by_a_role_alone(
    opened: Callable[..., S3Driver], place: Place
) -> None:
    driver = opened()
    driver.run("t1", 3)
    driver.run("t2", 2)
    newest = driver.table.newest()
    assert newest is not None and newest.transaction == "t2"
    assert driver.table.sweep(grace_ms=0).removed == 0
    askers = {one for one in place.proxy.asked_by if one}
    assert askers and ASKS not in askers, "whoever asked by his own keys would be refused"
    assert all(one.startswith("ASIA") for one in askers), askers
