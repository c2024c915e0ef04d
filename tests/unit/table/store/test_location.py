"""Where a table is: which paths are taken."""

from __future__ import annotations

import subprocess
import sys

import pytest

from table.errors import Refused
from table.store.location import Location, plain, store_at
from table.store.objects.settings import ObjectSettings


def test_what_is_on_a_file_system_is_its_plain_path() -> None:
    assert plain("file:///data/lake/events/") == "/data/lake/events"
    assert plain("file:/data/a b") == "/data/a b"
    assert plain("/data/lake") == "/data/lake"
    for path, reason in {
        "ftp://host/t": "ftp:// is not supported;",
        "wasbs://box@account/t": "Azure's storage is written abfss://",
        "file://host/t": "names the host host",
        "data/t": "must be absolute",
        "file:///": "must be absolute",
    }.items():
        with pytest.raises(Refused, match=reason):
            plain(path)


@pytest.mark.parametrize("path", ["hdfs:///locks", "file://host/locks", "locks"])
def test_what_is_refused_is_named_by_its_setting(path: str) -> None:
    with pytest.raises(Refused, match=f"^hoodie.x {path}: "):
        store_at(path, setting="hoodie.x")


def test_a_location_has_a_store_whose_root_it_is() -> None:
    assert store_at("file:///data/a b").place("c") == "/data/a b/c"


@pytest.mark.parametrize("path", ["file:///lake//events", "/lake/./events/", "file:/lake/events"])
def test_a_path_is_read_as_hudi_reads_it(path: str) -> None:
    """By its text. Left to the system, `link/..` would be where the link leads, to us and not to Hudi: it is
    refused."""
    assert plain(path) == "/lake/events"
    with pytest.raises(Refused, match="write the path that is meant"):
        plain("/lake/link/../events")


def test_an_object_store_is_had_by_those_alone_who_say_how_it_is_reached() -> None:
    with pytest.raises(Refused, match="only be on a file system"):
        store_at("s3a://lake/t")
    with pytest.raises(Refused, match="hdfs:// is not supported yet"):
        store_at("hdfs:///t", settings=ObjectSettings())


@pytest.mark.parametrize(
    ("spellings", "is_written"),
    [
        (
            ("/data/t", "file:/data/t", "file:///data/t/", "FILE://localhost/data//t", "/data/./t"),
            "file:///data/t",
        ),
        (
            ("s3a://Lake/a b/ä", "s3://Lake/a b/ä/", "s3n://Lake/a b/ä", "S3A://Lake/a b/ä"),
            "s3a://Lake/a b/ä",
        ),
        (("gs://lake/t%20", "GS://lake/t%20/"), "gs://lake/t%20"),
        (
            ("abfss://box@acct.dfs.core.windows.net/t", "abfs://box@ACCT.dfs.core.windows.net/t/"),
            "abfss://box@acct.dfs.core.windows.net/t",
        ),
        (("hdfs://Nn:8020/t", "hdfs://nn/t/", "hdfs://nn//t"), "hdfs://nn/t"),
        (("hdfs:///t",), "hdfs:///t"),
    ],
)
def test_spellings_of_one_place_are_one_location(spellings: tuple[str, ...], is_written: str) -> None:
    assert {Location.parse(one) for one in spellings} == {Location.parse(is_written)}
    assert {str(Location.parse(one)) for one in spellings} == {is_written}


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("s3a://lake/t", "s3a://lake/T"),
        ("s3a://lake/t", "s3a://lake2/t"),
        ("s3a://lake/t", "gs://lake/t"),
        ("s3a://lake/a b", "s3a://lake/a%20b"),
        ("hdfs://nn/t", "hdfs://nn:9000/t"),
    ],
)
def test_places_that_differ_are_told_apart(one: str, another: str) -> None:
    assert Location.parse(one) != Location.parse(another)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("s3a://lake", "names no folder"),
        ("s3a://lake//", "names no folder|empty"),
        ("s3a://lake/../t", r"'\.\.' part"),
        ("s3a://lake/a/./t", r"'\.\.' part"),
        ("s3a://lake/a//t", "an empty"),
        ("s3a://lake/a\nt", "control character"),
        ("file:///a\x00t", "control character"),
        ("file:///a/../t", r"it holds '\.\.'"),
        ("s3a://lake/a?b", "Hadoop"),
        ("s3a://lake/a#b", "Hadoop"),
        ("s3a:/lake/t", "such as s3a://bucket"),
        ("s3a:///t", "no name of the kind"),
        ("s3a://l ake/t", "no name of the kind"),
        ("abfss://account.dfs.core.windows.net/t", "no name of the kind"),
        ("abfss://box@account/t", "no name of the kind"),
        ("abfss://box@account.blob.core.windows.net/t", "no name of the kind"),
        ("abfss://box@account.dfs.core.windows.net/a./t", "ends with a dot"),
        ("hdfs://a b/t", "no name of the kind"),
        ("s3a://lake/" + "x" * 1025, "more than 1024 bytes"),
        ("s3a://lake/\udcff", "UTF-8"),
        ("", "must be absolute"),
    ],
)
def test_a_path_that_means_something_else_is_refused_with_a_sentence(path: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        Location.parse(path)


@pytest.mark.parametrize(
    "path", ["s3a://AKIA:Secret@lake/t", "s3a://AKIA:Sec/ret@lake/t", "hdfs://me:Secret@nn/t"]
)
def test_a_secret_that_somebody_wrote_into_an_address_is_not_said_again(path: str) -> None:
    with pytest.raises(Refused) as refused:
        Location.parse(path)
    assert "Sec" not in str(refused.value)


@pytest.mark.parametrize(
    ("library", "address", "settings", "extra"),
    [
        ("obstore", "s3a://lake/t", "ObjectSettings()", "objects"),
        ("hdfs_native", "hdfs://nn/t", "HdfsSettings()", "hdfs"),
    ],
)
def test_who_lacks_a_library_is_told_what_brings_it(
    library: str, address: str, settings: str, extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from table.errors import Refused\n"
        "from table.store.hdfs.settings import HdfsSettings\n"
        "from table.store.location import store_at\n"
        "from table.store.objects.settings import ObjectSettings\n"
        f"try: store_at({address!r}, settings={settings})\n"
        "except Refused as refused: print(refused)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"the library {library} is missing here: pip install 'lockstep[{extra}]'" in said
