"""What Google's connector for Hadoop is told, from the settings that the Python side obeys."""

from __future__ import annotations

import pytest

from table.errors import Refused
from table.store.connectors import HadoopSettings, hadoop_settings, store_needs
from table.store.location import Location
from table.store.objects.hadoop_google import CONNECTOR
from table.store.objects.settings import Anonymous, Credentials, FixedKeys, KeyFile, ObjectSettings


def told(credentials: Credentials, endpoint: str = "") -> HadoopSettings:
    settings = ObjectSettings(endpoint=endpoint, credentials=credentials)
    return hadoop_settings(Location.parse("gs://lake/events"), settings)


def test_a_table_at_google_wants_googles_connector_and_no_package_of_sparks() -> None:
    needs = store_needs("gs://lake/events")
    assert needs.classified == (CONNECTOR,) and needs.packages == ()
    assert store_needs("s3a://lake/events").classified == ()
    assert (store_needs("s3a://lake/a") + needs).classified == (CONNECTOR,)


def test_server_and_credentials_are_those_of_the_python_side() -> None:
    found = told(Anonymous(), "http://127.0.0.1:1")
    assert found.plain["fs.gs.storage.root.url"] == "http://127.0.0.1:1/"
    assert found.plain["fs.gs.auth.null.enable"] == "true"
    assert found.plain["fs.gs.http.read-timeout"] == "30000"
    by_file = told(KeyFile("/keys/lake.json"))
    assert by_file.plain["fs.gs.auth.service.account.json.keyfile"] == "/keys/lake.json"
    assert "fs.gs.storage.root.url" not in by_file.plain and not by_file.secret
    assert {one.asked for one in by_file.tuning} == {one.name for one in by_file.tuning}
    assert all(one.name.startswith("fs.gs.") for one in by_file.tuning)


def test_credentials_that_are_not_googles_are_refused() -> None:
    with pytest.raises(Refused, match="is no credential of Google's"):
        told(FixedKeys("the key", "the secret"))
