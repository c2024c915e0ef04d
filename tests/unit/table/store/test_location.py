"""Where a table is: which paths are taken."""

from __future__ import annotations

import pytest

from lockstep.config.model import Table
from table.errors import Refused
from table.store.location import STORES, local_path, store_at


def test_only_local_paths_are_taken() -> None:
    assert local_path("file:///data/lake/events/") == "/data/lake/events"
    assert local_path("file:/data/a b") == "/data/a b"
    assert local_path("/data/lake") == "/data/lake"
    for path, reason in {
        "s3a://bucket/t": "s3a:// is not supported",
        "hdfs:///t": "hdfs:// is not supported",
        "file://host/t": "names the host host",
        "data/t": "must be absolute",
        "file:///": "must be absolute",
    }.items():
        with pytest.raises(Refused, match=reason):
            local_path(path)


@pytest.mark.parametrize("path", ["hdfs:///locks", "file://host/locks", "locks"])
def test_what_is_refused_is_named_by_its_setting(path: str) -> None:
    with pytest.raises(Refused, match=f"^hoodie.x {path}: "):
        store_at(path, setting="hoodie.x")


@pytest.mark.parametrize("scheme", STORES)
def test_the_configuration_takes_the_addresses_of_every_store_there_is(scheme: str) -> None:
    given = {"path": f"{scheme}:///data/lake/events/", "name": "t"}
    assert Table.model_validate(given).path == f"{scheme}:///data/lake/events"
    assert f"`{scheme}://`" in str(Table.model_fields["path"].description)


def test_a_location_has_a_store_whose_root_it_is() -> None:
    assert store_at("file:///data/a b").place("c") == "/data/a b/c"


@pytest.mark.parametrize(
    "path", ["/lake/link/../events", "file:///lake//events", "/lake/./events/", "file:/lake/x/../events"]
)
def test_a_path_is_read_as_hudi_reads_it_whatever_is_a_link(path: str) -> None:
    """Hadoop's paths are normalised by their text. Left to the system, `link/..` is where the link leads: the
    driver's Hudi and our own half would each have a table, a lock or a clock of its own."""
    assert local_path(path) == "/lake/events"
