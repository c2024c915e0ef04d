"""What a store of objects promises beside what every store does, on Azurite; and what Azurite, and the
endpoint that we have before it, say, of which Hadoop's connector and the table lock rely on each.
"""

from __future__ import annotations

import base64
import errno
import http.client
import json
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from email.utils import formatdate
from urllib.parse import quote

import pytest

from table.store.location import store_at
from table.store.objects.requests import Request
from table.store.objects.settings import MIB, AccountKey, ObjectSettings
from table.store.objects.store import ObjectStore
from tests.azure.front import HADOOPS
from tests.azure.server import ACCOUNT, API_VERSION, KEY, AzureServer, authority_of
from tests.azure.signed import signature
from tests.azure_fixture import CONTAINER, new_place
from tests.s3_proxy import Blow, S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("azure")]

PART = 5 * MIB
OBJECTS = 1_200
RACERS = 16


class Said:
    """An answer."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers.items()}, body

    @property
    def code(self) -> str:
        return self.headers.get("x-ms-error-code", "")

    @property
    def tag(self) -> str:
        return self.headers["etag"]


def ask(
    azure: AzureServer,
    method: str,
    path: str,
    query: str = "",
    *,
    body: bytes = b"",
    hadoop: bool = True,
    key: str = KEY,
    **more: str,
) -> Said:
    """As Hadoop's connector asks its endpoint, or as the table lock asks the other. `more`: headers, by names
    with `_` for `-`.
    """
    target = f"/{ACCOUNT}/{CONTAINER}/{quote(path)}" + (f"?{query}" if query else "")
    headers = {"x-ms-version": API_VERSION, "x-ms-date": formatdate(usegmt=True)}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    headers |= {"Content-Length": str(len(body)), "User-Agent": HADOOPS if hadoop else "lock"}
    headers["Authorization"] = signature(method, target, headers, account=ACCOUNT, key=key)
    connection = http.client.HTTPConnection("127.0.0.1", azure.port, timeout=30)
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return Said(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def patch(azure: AzureServer, path: str, query: str, body: bytes = b"") -> Said:
    return ask(azure, "PUT", path, query, body=body, X_HTTP_Method_Override="PATCH")


def written(azure: AzureServer, path: str, content: bytes) -> Said:
    """As Hadoop's connector writes a file."""
    assert ask(azure, "PUT", path, "resource=file", If_None_Match="*").status == 201
    assert patch(azure, path, "action=append&position=0", content).status == 202
    return patch(azure, path, f"action=flush&position={len(content)}&retainUncommittedData=false&close=true")


def name() -> str:
    return f"t {uuid.uuid4().hex}/a=ä%+1"


def store_of(settings: ObjectSettings, place: str = "") -> ObjectStore:
    made = store_at(place or new_place(), settings=settings)
    assert isinstance(made, ObjectStore)
    return made


# --- Python's half -----------------------------------------------------------------------------------------


def test_of_sixteen_that_create_an_object_at_azures_server_one_wins(azure: AzureServer) -> None:
    place = new_place()
    stores = [store_of(azure.settings, place) for _ in range(RACERS)]
    with ThreadPoolExecutor(RACERS) as pool:
        won = [*pool.map(lambda store: store.create("one", b"all the same"), stores)]
    assert won.count(True) == 1


def test_an_object_in_blocks_is_there_when_it_is_closed_and_not_before(azure: AzureServer) -> None:
    store = store_of(replace(azure.settings, part_bytes=PART))
    sink = store.sink("one")
    for number in range(3):
        sink.write(bytes([number]) * PART)
        assert store.stat("one") is None
    sink.close()
    assert store.secure("one") == 3 * PART
    with store.source("one") as source:
        assert [source.read(PART) for _ in range(3)] == [bytes([number]) * PART for number in range(3)]


def test_of_an_object_that_is_replaced_at_azures_server_nobody_reads_parts_of_both(
    azure: AzureServer,
) -> None:
    store = store_of(replace(azure.settings, read_ahead_bytes=1))
    store.put("one", b"first")
    with store.source("one") as source:
        assert source.read(1) == b"f"
        store.put("one", b"other")
        with pytest.raises(OSError, match="replaced") as told:
            source.read(1)
    assert told.value.errno == errno.ESTALE


def test_a_folder_of_azures_server_is_listed_page_by_page_and_deleted(azure: AzureServer) -> None:
    store = store_of(azure.settings)
    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(lambda number: store.put(f"day=1/{number:04}", b"x"), range(OBJECTS)))
    assert store.names("day=1") == [f"{number:04}" for number in range(OBJECTS)]
    ((folder, names),) = [found for found in store.walk() if found[1]]
    assert folder == "day=1" and len(names) == OBJECTS
    store.delete_folder("day=1")
    assert store.stat("day=1") is None


def test_a_folder_that_azure_shows_as_an_empty_blob_is_no_file(azure: AzureServer) -> None:
    """As in an account with a hierarchical namespace: folders stay when their last file goes."""
    store = store_of(azure.settings)
    store.put("a/b/one", b"x")
    looked = ask(azure, "HEAD", f"{store._root}/a/b", hadoop=False)
    assert (looked.status, looked.headers["x-ms-meta-hdi_isfolder"]) == (200, "true")
    folder = store.stat("a/b")
    assert folder is not None and folder.is_folder
    store.delete("a/b/one")
    assert ask(azure, "HEAD", f"{store._root}/a/b", hadoop=False).status == 200
    assert store.stat("a/b") is None
    with pytest.raises(FileNotFoundError):
        store.read("a/c", bytes_max=1)


def test_what_azures_server_refuses_is_told_with_what_to_do(azure: AzureServer) -> None:
    hasty = replace(azure.settings, patience_s=1.0)
    with pytest.raises(OSError, match="there is no container nowhere@") as told:
        store_of(hasty, f"abfss://{authority_of('nowhere')}/a").names()
    assert told.value.errno == errno.ENXIO
    wrong = base64.b64encode(b"another").decode()
    for asked in (
        lambda store: store.names(),
        lambda store: store.put("one", b""),
        lambda store: store.stat("a"),
    ):
        with pytest.raises(PermissionError, match="the account's key is not the account's") as told:
            asked(store_of(replace(hasty, credentials=AccountKey(wrong))))
        assert wrong not in str(told.value)


# --- conditions, as the lock and the driver's files rely on them --------------------------------


def test_azures_server_puts_a_blob_on_condition_of_its_tag_or_that_there_is_none(azure: AzureServer) -> None:
    path = name()

    def put(condition: dict[str, str]) -> Said:
        return ask(azure, "PUT", path, body=b"1", hadoop=False, x_ms_blob_type="BlockBlob", **condition)

    with ThreadPoolExecutor(RACERS) as pool:
        answers = list(pool.map(put, [{"If_None_Match": "*"}] * RACERS))
        assert sorted(one.status for one in answers) == [201, *[409] * (RACERS - 1)]
        assert {one.code for one in answers if one.status == 409} == {"BlobAlreadyExists"}
        (was,) = [one.tag for one in answers if one.status == 201]
        answers = list(pool.map(put, [{"If_Match": was}] * RACERS))
        assert sorted(one.status for one in answers) == [201, *[412] * (RACERS - 1)]
    assert put({"If_Match": was}).status == 412
    assert ask(azure, "DELETE", path, hadoop=False).status == 202
    assert put({"If_Match": was}).status == 412, "one that is gone is not replaced"


def test_a_request_with_another_key_is_refused_by_both_of_azures_endpoints(azure: AzureServer) -> None:
    wrong = base64.b64encode(b"another").decode()
    for hadoop in (True, False):
        answer = ask(azure, "GET", name(), hadoop=hadoop, key=wrong, Range="bytes=0-1")
        assert answer.status == 403 and b"uthenticat" in answer.body


# --- the other endpoint, as Hadoop's connector relies on it ----------------------------------------------


def test_a_file_that_hadoop_creates_is_empty_until_it_is_flushed_and_is_created_once(
    azure: AzureServer,
) -> None:
    path = name()
    with ThreadPoolExecutor(RACERS) as pool:
        made = list(
            pool.map(lambda _: ask(azure, "PUT", path, "resource=file", If_None_Match="*"), range(RACERS))
        )
    assert sorted(one.status for one in made) == [201, *[409] * (RACERS - 1)]
    assert {one.code for one in made if one.status == 409} == {"PathAlreadyExists"}
    assert patch(azure, path, "action=append&position=3", b"def").status == 202
    assert patch(azure, path, "action=append&position=0", b"abc").status == 202
    assert ask(azure, "HEAD", path, "action=getStatus").headers["content-length"] == "0"
    assert patch(azure, path, "action=flush&position=6&close=true").status == 200
    found = ask(azure, "HEAD", path, "action=getStatus&upn=false")
    assert (found.headers["content-length"], found.headers["x-ms-resource-type"]) == ("6", "file")
    read = ask(azure, "GET", path, Range="bytes=1-3", If_Match=found.tag)
    assert (read.status, read.body) == (206, b"bcd")
    assert ask(azure, "GET", path, Range="bytes=0-1", If_Match='"0x1"').status == 412
    assert ask(azure, "GET", path, Range="bytes=6-7").status == 416


def test_what_hadoop_appended_with_a_gap_or_to_a_file_that_was_replaced_is_not_flushed(
    azure: AzureServer,
) -> None:
    path = name()
    assert ask(azure, "PUT", path, "resource=file").status == 201
    assert patch(azure, path, "action=append&position=1", b"x").status == 202
    assert patch(azure, path, "action=flush&position=2").code == "InvalidFlushPosition"
    assert patch(azure, path, "action=append&position=0", b"x").status == 202
    replaced = ask(azure, "PUT", path, body=b"", hadoop=False, x_ms_blob_type="BlockBlob")
    assert replaced.status == 201
    assert patch(azure, path, "action=flush&position=1").status == 412
    assert patch(azure, name(), "action=append&position=0", b"x").code == "PathNotFound"


def test_a_file_that_hadoop_overwrites_is_the_one_whose_tag_it_names(azure: AzureServer) -> None:
    path = name()
    was = written(azure, path, b"first").tag
    assert ask(azure, "PUT", path, "resource=file", If_Match='"0x1"').status == 412
    assert ask(azure, "PUT", path, "resource=file", If_Match=was).status == 201
    assert ask(azure, "HEAD", path, "action=getStatus").headers["content-length"] == "0"


def test_hadoops_folders_are_there_with_what_is_in_them_and_stay_until_they_are_deleted(
    azure: AzureServer,
) -> None:
    top = f"t-{uuid.uuid4().hex}"

    def listed(folder: str, query: str = "") -> Said:
        return ask(azure, "GET", "", f"resource=filesystem&directory={folder}&recursive=false{query}")

    def names(said: Said) -> dict[str, bool]:
        return {one["name"]: one.get("isDirectory") == "true" for one in json.loads(said.body)["paths"]}

    assert listed(top).code == "PathNotFound"
    assert ask(azure, "PUT", f"{top}/empty/deep", "resource=directory").status == 201
    assert ask(azure, "PUT", f"{top}/empty/deep", "resource=directory").status == 201
    for one in "abc":
        assert written(azure, f"{top}/{one}", b"1").status == 200
    whole = {f"{top}/a": False, f"{top}/b": False, f"{top}/c": False, f"{top}/empty": True}
    assert names(listed(top)) == whole
    page = listed(top, "&maxResults=3")
    rest = listed(top, f"&maxResults=3&continuation={quote(page.headers['x-ms-continuation'])}")
    assert {**names(page), **names(rest)} == whole and "x-ms-continuation" not in rest.headers
    assert ask(azure, "HEAD", top, "action=getStatus").headers["x-ms-resource-type"] == "directory"
    assert (
        ask(azure, "PUT", f"{top}/a", "resource=directory").headers["x-ms-existing-resource-type"] == "file"
    )
    assert ask(azure, "PUT", top, "resource=file").code == "PathAlreadyExists"
    assert ask(azure, "DELETE", top, "recursive=false").code == "DirectoryNotEmpty"
    assert ask(azure, "DELETE", f"{top}/a", "recursive=false").status == 200
    assert ask(azure, "DELETE", top, "recursive=true").status == 200
    assert ask(azure, "DELETE", top, "recursive=true").code == "PathNotFound"
    assert ask(azure, "HEAD", f"{top}/b", "action=getStatus").status == 404


def test_hadoop_renames_a_file_where_nothing_is_and_nowhere_else(azure: AzureServer) -> None:
    source, target, taken = name(), name(), name()
    for one in (source, taken):
        written(azure, one, one.encode())

    def renamed(to: str) -> Said:
        whence = quote(f"/{CONTAINER}/{source}")
        return ask(azure, "PUT", to, x_ms_rename_source=whence, If_None_Match="*")

    assert renamed(taken).code == "PathAlreadyExists"
    assert renamed(target).status == 201
    assert ask(azure, "GET", target, Range="bytes=0-999").body == source.encode()
    assert renamed(name()).code == "SourcePathNotFound"


def test_what_nobody_has_looked_up_is_refused_by_the_endpoint_and_remembered(azure: AzureServer) -> None:
    before = len(azure.unknown)
    for method, query in (
        ("POST", ""),
        ("HEAD", "action=checkAccess&fsAction=r"),
        ("PUT", "resource=file&blobtype=a"),
    ):
        assert ask(azure, method, name(), query).status == 501
    assert len(azure.unknown) == before + 3
    del azure.unknown[before:]


@pytest.mark.parametrize("blow", [Blow.LOSE, Blow.FAIL_AFTER])
@pytest.mark.parametrize("lost", [Request.PART, Request.COMPLETE])
def test_a_file_of_several_blocks_is_whole_though_an_answer_was_lost(
    azure: AzureServer, lost: Request, blow: Blow
) -> None:
    """Asked again to put blocks together that are so already, it knows none of them."""
    with S3Proxy(azure.port) as proxy:
        settings = replace(azure.settings, endpoint=proxy.endpoint, part_bytes=PART)
        store = store_at(new_place(), settings=settings)
        proxy.strike(lost, blow)
        with closing(store.sink("one")) as sink:
            sink.write(b"x" * (2 * PART + 1))
        assert not proxy.unstruck()
        assert store.secure("one") == 2 * PART + 1
