"""What a store of objects promises beside what every store does, on fake-gcs-server, of Google's API.

Its conditions are tried by the JSON API too, without what we have before it: the lock asks so.
"""

from __future__ import annotations

import errno
import http.client
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lockstep.stores import google_xml
from lockstep.stores.gs import GsServer
from table.store.location import store_at
from table.store.objects.settings import MIB, ObjectSettings
from table.store.objects.store import ObjectStore
from table.store.probe import probe
from tests.gs_fixture import BUCKET, new_place

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("gs")]

PART = 5 * MIB
OBJECTS = 1_200
RACERS = 16
PARTS = "begin a file of several parts"


def store_of(settings: ObjectSettings, place: str = "") -> ObjectStore:
    made = store_at(place or new_place(), settings=settings)
    assert isinstance(made, ObjectStore)
    return made


def test_of_sixteen_that_create_an_object_at_googles_server_one_wins(gs: GsServer) -> None:
    place = new_place()
    stores = [store_of(gs.settings, place) for _ in range(RACERS)]
    with ThreadPoolExecutor(RACERS) as pool:
        won = [*pool.map(lambda store: store.create("one", b"all the same"), stores)]
    assert won.count(True) == 1


def test_an_object_that_is_written_in_parts_is_there_when_it_is_closed_and_not_before(gs: GsServer) -> None:
    store = store_of(replace(gs.settings, part_bytes=PART))
    sink = store.sink("one")
    for number in range(3):
        sink.write(bytes([number]) * PART)
        assert store.stat("one") is None
    sink.close()
    assert store.secure("one") == 3 * PART
    with store.source("one") as source:
        assert [source.read(PART) for _ in range(3)] == [bytes([number]) * PART for number in range(3)]


def test_of_an_object_that_is_replaced_at_googles_server_nobody_reads_parts_of_both(gs: GsServer) -> None:
    store = store_of(replace(gs.settings, read_ahead_bytes=1))
    store.put("one", b"first")
    with store.source("one") as source:
        assert source.read(1) == b"f"
        store.put("one", b"other")
        with pytest.raises(OSError, match="replaced") as told:
            source.read(1)
    assert told.value.errno == errno.ESTALE


def test_a_folder_of_googles_server_is_listed_page_by_page(gs: GsServer) -> None:
    store = store_of(gs.settings)
    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(lambda number: store.put(f"day=1/{number:04}", b"x"), range(OBJECTS)))
    assert store.names("day=1") == [f"{number:04}" for number in range(OBJECTS)]
    ((folder, names),) = [found for found in store.walk() if found[1]]
    assert folder == "day=1" and len(names) == OBJECTS
    store.delete_folder("day=1")
    assert store.stat("day=1") is None


def test_a_bucket_that_googles_server_lacks_is_named(gs: GsServer) -> None:
    with pytest.raises(OSError, match="there is no bucket nowhere"):
        store_of(replace(gs.settings, patience_s=1.0), "gs://nowhere/a").names()


def test_googles_server_keeps_a_generation_that_a_put_by_the_json_api_names(gs: GsServer) -> None:
    """An upload of type `multipart`: one of type `media` this server takes whatever it names."""
    key = new_place().rsplit("+", 1)[-1]

    def put(generation: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", gs.port, timeout=60)
        path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart&ifGenerationMatch={generation}"
        parts = (("application/json", f'{{"name": "{key}"}}'), ("text/plain", "1"))
        content = "".join(f"--border\r\nContent-Type: {kind}\r\n\r\n{part}\r\n" for kind, part in parts)
        headers = {"Content-Type": "multipart/related; boundary=border"}
        connection.request("POST", path, content + "--border--\r\n", headers)
        answer = connection.getresponse()
        status, body = answer.status, answer.read()
        connection.close()
        return status, body

    def generation() -> str:
        connection = http.client.HTTPConnection("127.0.0.1", gs.port, timeout=60)
        connection.request("GET", f"/storage/v1/b/{BUCKET}/o/{key}?alt=media")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.getheader("x-goog-generation") or ""

    with ThreadPoolExecutor(RACERS) as pool:
        assert sorted(status for status, _ in pool.map(put, ["0"] * RACERS)) == [200, *[412] * (RACERS - 1)]
        was = generation()
        assert sorted(status for status, _ in pool.map(put, [was] * RACERS)) == [200, *[412] * (RACERS - 1)]
    assert put(was)[0] == 412 and generation() not in ("", was)


def test_what_a_role_lacks_for_files_of_several_parts_is_said_before_a_run_meets_it(
    gs: GsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google has a permission of its own for them, so that small files are no proof."""
    assert {one.what: one.why_not for one in probe(new_place(), gs.settings)}[PARTS] == ""

    def refuses(*_request: object) -> google_xml._Answer:
        return google_xml._error(403, "AccessDenied")

    monkeypatch.setattr(google_xml._Handler, "_parts", refuses)
    found = {one.what: one.why_not for one in probe(new_place(), gs.settings)}
    assert [what for what in found if found[what]] == [PARTS]
    assert "storage.multipartUploads.create" in found[PARTS]
