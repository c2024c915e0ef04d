"""How Hadoop's own client is told of the HDFS that ours reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from table.store.connectors import hadoop_settings, store_needs
from table.store.hdfs.settings import HdfsSettings
from table.store.location import Location
from table.store.security import SIMPLE, asked_security

TABLE = "hdfs://cluster/lake/events"


def test_the_client_is_in_sparks_own_jars() -> None:
    assert store_needs(TABLE).packages == ()


def test_the_clusters_own_files_are_named_and_what_is_tuned_can_be_said_otherwise() -> None:
    found = hadoop_settings(Location.parse(TABLE), HdfsSettings(config_folder="/etc/hadoop/conf"))
    assert found.resources == ("/etc/hadoop/conf/core-site.xml", "/etc/hadoop/conf/hdfs-site.xml")
    assert found.plain == {} and found.secret == {}
    assert all(one.asked == one.name for one in found.tuning)
    assert hadoop_settings(Location.parse(TABLE), HdfsSettings()).resources == ()


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            "<property><name>hadoop.security.authentication</name><value> Kerberos </value></property>",
            "kerberos",
        ),
        ("<property><name>fs.defaultFS</name><value>hdfs://cluster</value></property>", SIMPLE),
        ("<property>", SIMPLE),
    ],
)
def test_what_a_cluster_wants_of_who_comes_is_read_from_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, asked: str
) -> None:
    (tmp_path / "core-site.xml").write_text(f"<configuration>{said}</configuration>")
    assert asked_security(HdfsSettings(config_folder=str(tmp_path))) == asked
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert asked_security(HdfsSettings()) == asked
