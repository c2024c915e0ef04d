"""What `lockstep validate` says of a table in S3 that is not there yet: what its driver's JVM cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lockstep.config.load import from_mapping
from lockstep.stores.local import S3Server, role_arn
from lockstep.validate import check_table
from table.store.location import store_at
from tests.place import KEYS, VARIABLES
from tests.s3_fixture import ROLE

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

WITH_KEYS = {"credentials": "keys", **{name: f"${{env:{one}}}" for name, one in VARIABLES.items()}}


def checked(spark: SparkSession, s3: S3Server, path: str, storage: Mapping[str, Any]) -> tuple[str, str]:
    """The verdict of the table's check, and its sentence."""
    own = {"endpoint": s3.endpoint, "region": "us-east-1", "path_style": True}
    config = from_mapping(
        {
            "pipeline": {"id": "events", "workers": 1},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": path, "name": "events", "key": ["event_id"]},
            "storage": {**own, **storage},
        }
    )
    found = check_table(spark, config)
    return found.verdict, found.detail


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["LAKE_KEY"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["LAKE_SECRET"])


@pytest.mark.parametrize(
    ("name", "storage", "sentence"),
    [
        ("odd name", WITH_KEYS, "Hudi's lock of tables in object stores cannot have"),
        (
            "t",
            {
                "credentials": "role",
                "role": role_arn(ROLE),
                "role_endpoint": "{endpoint}",
                "external_id": "${env:LAKE_KEY}",
            },
            "a role with an external id cannot be assumed by Hadoop's connector",
        ),
        (
            "t",
            {"credentials": "role", "role": role_arn(ROLE), "role_endpoint": "{endpoint}"},
            "JVM",
        ),
    ],
)
def test_what_python_can_and_the_drivers_jvm_cannot_is_said(
    spark: SparkSession,
    s3: S3Server,
    tmp_path: Path,
    name: str,
    storage: Mapping[str, str],
    sentence: str,
) -> None:
    path = f"s3a://lake/{tmp_path.name}/{name}"
    storage = {key: value.replace("{endpoint}", s3.endpoint) for key, value in storage.items()}
    verdict, detail = checked(spark, s3, path, storage)
    assert verdict == "failed" and sentence in detail, detail


def test_a_place_that_can_be_used_is_left_as_it_was(
    spark: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    path = f"s3a://lake/{tmp_path.name}/täble"
    verdict, detail = checked(spark, s3, path, WITH_KEYS)
    assert (verdict, detail) == ("ok", f"{path} is not there yet; the run makes it")
    assert not list(store_at(path, settings=s3.settings).walk())
