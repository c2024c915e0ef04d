"""Schemas of a registry: what is asked, what is kept, what becomes of each answer. Nothing is played here."""

from __future__ import annotations

import json
import logging
import ssl
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from participant.records.errors import ChangedSchema, SchemasUnavailable, UnknownSchema
from participant.records.protobuf.registry import PROTOBUF
from participant.records.registry import client as asking
from participant.records.registry.client import AWAY_S, RegistryClient, RegistrySchemas
from participant.records.registry.disk import KeptSchemas, folder_of
from participant.records.registry.settings import RegistrySettings
from table.schema import SchemaError
from tests.registry_server import (
    DRIP,
    ERROR,
    HANG,
    HTML,
    LOST,
    NONSENSE,
    REDIRECT,
    WELL,
    Registry,
    Schemas,
)

TEXT = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]})
OTHER = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})
SECRET = "zyxwv"


@pytest.fixture
def settings(registry: Registry, tmp_path: Path) -> RegistrySettings:
    return RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "RETRY_FIRST_MS", 10)
    monkeypatch.setattr(asking, "RETRY_MAX_MS", 20)
    monkeypatch.setattr(asking, "SILENT_FIRST_S", 0.0)
    monkeypatch.setattr(asking, "WAIT_S", 60.0)
    monkeypatch.setattr(asking, "WAIT_AGAIN_S", 60.0)


def register(registry: Registry, text: str, subject: str = "events-value", **more: object) -> int:
    return registry.known.register(subject, {"schema": text, **more})


@pytest.mark.parametrize("by", ["ids", "guids"])
def test_a_schema_is_asked_for_once_by_id_or_guid(
    registry: Registry, settings: RegistrySettings, by: str
) -> None:
    number = register(registry, TEXT)
    key = number if by == "ids" else registry.known.told(number)["guid"]
    schemas = RegistrySchemas(settings)
    for _ in range(3):
        assert schemas.find(key) == (TEXT,)
    assert [one.partition("?")[0] for one in registry.asked] == [f"GET /schemas/{by}/{key}"]


def test_its_requests_are_not_logged_one_by_one(
    registry: Registry, settings: RegistrySettings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        RegistryClient(settings).schema(register(registry, TEXT))
    assert not caplog.messages


def test_what_it_refers_to_comes_before_it_and_once(registry: Registry, settings: RegistrySettings) -> None:
    enum = json.dumps({"type": "enum", "name": "e", "symbols": ["A"]})
    one = json.dumps({"type": "record", "name": "one", "fields": [{"name": "a", "type": "e"}]})
    top = json.dumps(
        {
            "type": "record",
            "name": "top",
            "fields": [{"name": "b", "type": "one"}, {"name": "c", "type": "e"}],
        }
    )
    to_enum = {"name": "e", "subject": "enum", "version": 1}
    register(registry, enum, "enum")
    register(registry, one, "one", references=[to_enum])
    to_one = {"name": "one", "subject": "one", "version": 1}
    number = register(registry, top, references=[to_one, to_enum])
    assert RegistrySchemas(settings).find(number) == (enum, one, top)
    broken = register(registry, OTHER, references=[{**to_enum, "version": 7}])
    with pytest.raises(UnknownSchema):
        RegistrySchemas(settings).find(broken)


FAULTS = [
    (HTML, "answers with something that is not JSON, as a proxy's page is"),
    (REDIRECT, "sends us elsewhere (302), where our credentials do not go"),
    (ERROR, "answers with an error (503)"),
    (NONSENSE, "answers with JSON that holds no schema: is it a schema registry?"),
    (LOST, "answers 404, and not as a schema registry: is the path right?"),
    (HANG, "cannot be reached (timed out)"),
    (DRIP, "has not answered for"),
]


@pytest.mark.parametrize(("does", "why"), FAULTS, ids=[does for does, _ in FAULTS])
def test_whatever_is_no_answer_of_a_registry_is_an_outage_and_not_the_records_fault(
    registry: Registry, settings: RegistrySettings, does: str, why: str
) -> None:
    register(registry, TEXT)
    registry.does = does
    schemas = RegistrySchemas(replace(settings, user="u", password=SECRET))
    with pytest.raises(SchemasUnavailable) as caught:
        schemas.find(1)
    assert str(caught.value).startswith(f"the schema registry at {registry.url} {why}")
    assert SECRET not in str(caught.value)
    assert not any("elsewhere" in one for one in registry.asked), "it was followed"
    registry.does = WELL
    assert schemas.find(1) == (TEXT,)


def test_a_registry_that_is_not_there_is_an_outage(registry: Registry, settings: RegistrySettings) -> None:
    number = register(registry, TEXT)
    schemas = RegistrySchemas(settings)
    assert schemas.find(number) == (TEXT,)
    registry.close()
    with pytest.raises(SchemasUnavailable, match=r"cannot be reached \(.*[Cc]onnection refused"):
        schemas.find(number + 1)


def test_of_several_addresses_one_that_answers_is_enough(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    with Registry(known=registry.known) as second:
        both = replace(settings, url=f"{registry.url},{second.url}/")
        registry.close()
        assert RegistrySchemas(both).find(number) == (TEXT,)


def test_it_knows_us_by_what_we_are_given_and_refusal_is_an_outage_without_a_secret_in_it(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    registry.user, registry.token = f"u:{SECRET}", SECRET
    for good in (replace(settings, user="u", password=SECRET), replace(settings, token=SECRET, cluster="c")):
        assert RegistryClient(good).schema(number) == (TEXT,)
    for bad in (settings, replace(settings, user="u", password="no"), replace(settings, token="no")):
        with pytest.raises(SchemasUnavailable, match=r"refuses us \(401\): see to user") as caught:
            RegistryClient(bad).schema(number)
        assert SECRET not in str(caught.value)


def test_what_the_registry_does_not_know_is_unknown_and_asked_for_once(
    registry: Registry, settings: RegistrySettings
) -> None:
    schemas = RegistrySchemas(settings)
    for _ in range(3):
        with pytest.raises(UnknownSchema, match="the registry does not know it"):
            schemas.find(4)
    assert len(registry.asked) == 1
    with pytest.raises(UnknownSchema, match="no fingerprints"):
        schemas.find(b"12345678")


def test_a_schema_of_another_kind_is_unknown(registry: Registry, settings: RegistrySettings) -> None:
    number = register(registry, 'syntax = "proto3";', schemaType="PROTOBUF")
    with pytest.raises(UnknownSchema, match="one of PROTOBUF, not of Avro"):
        RegistrySchemas(settings).find(number)


def test_a_schema_that_is_larger_than_any_is_unknown(registry: Registry, settings: RegistrySettings) -> None:
    number = register(registry, " " * (asking.TEXT_CHARS_MAX + 1))
    with pytest.raises(UnknownSchema, match="more than 1,048,576 characters"):
        RegistrySchemas(settings).find(number)


# --- what is kept -----------------------------------------------------------------------------------


def test_while_it_is_away_what_was_seen_is_read_on_and_what_was_not_is_an_outage(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    RegistrySchemas(settings).find(number)
    registry.does = ERROR
    again = RegistrySchemas(settings)
    assert again.find(number) == (TEXT,)
    with pytest.raises(SchemasUnavailable):
        again.find(number + 1)


def test_one_that_is_away_is_not_asked_again_for_what_is_kept_until_a_while_later(
    registry: Registry, settings: RegistrySettings
) -> None:
    ids = [register(registry, text) for text in (TEXT, OTHER)]
    for number in ids:
        RegistrySchemas(settings).find(number)
    registry.does = ERROR
    now_s = 100.0
    again = RegistrySchemas(settings, now_s=lambda: now_s)
    again.find(ids[0])
    asked = len(registry.asked)
    assert again.find(ids[1]) == (OTHER,) and len(registry.asked) == asked
    now_s += AWAY_S
    again.find(ids[1])
    assert len(registry.asked) > asked


def test_a_subject_that_was_deleted_is_read_on_by_what_is_kept(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    RegistrySchemas(settings).find(number)
    registry.known.gone.add(number)
    assert RegistrySchemas(settings).find(number) == (TEXT,)


def test_an_id_that_means_another_schema_than_before_stops_and_says_what_to_remove(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    RegistrySchemas(settings).find(number)
    registry.known.__init__()  # type: ignore[misc]
    assert register(registry, OTHER) == number
    with pytest.raises(
        ChangedSchema, match=r"another schema 1 than it had before.* remove that file"
    ) as caught:
        RegistrySchemas(settings).find(number)
    kept = KeptSchemas(folder_of(settings.cache_folder, settings.urls)).path("1")
    assert str(kept) in str(caught.value)
    kept.unlink()
    assert RegistrySchemas(settings).find(number) == (OTHER,)


def test_a_schema_that_is_spelled_otherwise_is_the_same(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    RegistrySchemas(settings).find(number)
    registry.known.__init__()  # type: ignore[misc]
    spelled = json.dumps(json.loads(TEXT), indent=2)
    assert register(registry, spelled) == number
    assert RegistrySchemas(settings).find(number) == (spelled,)


def test_registries_share_no_files(tmp_path: Path) -> None:
    one, two = (folder_of(str(tmp_path), [f"http://{name}"]) for name in ("a", "b"))
    assert one != two
    assert folder_of(str(tmp_path), ["http://a", "http://b"]) == folder_of(
        str(tmp_path), ["http://b", "http://a"]
    )


# --- TLS --------------------------------------------------------------------------------------------


def test_a_registry_may_want_a_certificate_of_ours(tmp_path: Path) -> None:
    certificate, key = _self_signed(tmp_path)
    wanting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wanting.load_cert_chain(certificate, key)
    wanting.load_verify_locations(certificate)
    wanting.verify_mode = ssl.CERT_REQUIRED
    known = Schemas()
    known.register("events-value", {"schema": TEXT})
    with Registry(tls=wanting, known=known) as registry:
        settings = RegistrySettings(url=registry.url, timeout_ms=2_000, cache_folder=str(tmp_path / "s"))
        trusting = replace(settings, ca_file=str(certificate))
        ours = replace(trusting, certificate_file=str(certificate), key_file=str(key))
        assert RegistryClient(ours).schema(1) == (TEXT,)
        for bad in (settings, trusting):
            with pytest.raises(SchemasUnavailable, match="cannot be reached"):
                RegistryClient(bad).schema(1)
    with pytest.raises(SchemaError, match=r"\[registry\] cannot be used"):
        RegistryClient(replace(settings, ca_file=str(tmp_path / "none.pem")))


def _self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return certificate, key


def test_a_schema_of_another_kind_is_none_though_another_pipeline_has_kept_it(
    registry: Registry, settings: RegistrySettings
) -> None:
    number = register(registry, TEXT)
    RegistrySchemas(settings).find(number)
    with pytest.raises(UnknownSchema, match="it is one of AVRO, not of Protobuf"):
        RegistrySchemas(settings, PROTOBUF).find(number)


def test_an_answer_that_takes_longer_than_others_records_may_wait_is_there_when_it_is_asked_again(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WAIT_S", 0.05)
    monkeypatch.setattr(asking, "WAIT_AGAIN_S", 0.0)
    number = register(registry, TEXT)
    schemas = RegistrySchemas(settings)
    theirs = schemas._client._client
    gate, answered, told = threading.Event(), threading.Event(), theirs.get_schema

    def slow(*given: Any, **more: Any) -> Any:
        assert gate.wait(60)
        found = told(*given, **more)
        answered.set()
        return found

    monkeypatch.setattr(theirs, "get_schema", slow)
    for _ in range(3):
        with pytest.raises(SchemasUnavailable, match="has not answered for"):
            schemas.find(number)
    gate.set()
    assert answered.wait(60)
    monkeypatch.setattr(asking, "WAIT_AGAIN_S", 60.0)
    assert schemas.find(number) == (TEXT,)
    assert len(registry.asked) == 1, "it was asked once, and asked on"


def test_a_registry_that_does_not_answer_is_left_alone_for_a_while_whatever_is_asked_for(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SILENT_FIRST_S", 1.0)
    now_s = 100.0
    one, other = register(registry, TEXT), register(registry, OTHER)
    schemas = RegistrySchemas(settings, now_s=lambda: now_s)
    registry.does = ERROR
    waits = []
    for _ in range(5):
        before = len(registry.asked)
        with pytest.raises(SchemasUnavailable):
            schemas.find(one)
        assert len(registry.asked) > before
        asked, began_s = len(registry.asked), now_s
        while True:
            with pytest.raises(SchemasUnavailable, match="answers with an error"):
                schemas.find(other)
            if len(registry.asked) > asked:
                break
            now_s += 0.5
        waits.append(now_s - began_s)
        now_s += asking.SILENT_MAX_S
    assert waits[0] == 1.0 and max(waits) == asking.SILENT_MAX_S
    registry.does = WELL
    assert schemas.find(other) == (OTHER,) and schemas.find(one) == (TEXT,)


def test_so_many_questions_without_an_answer_and_no_more_are_asked(
    registry: Registry, settings: RegistrySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = RegistryClient(settings)
    registry.does = HANG
    for number in range(asking.ASKS_MAX):
        with pytest.raises(SchemasUnavailable, match="has not answered for"):
            client.schema(100 + number, wait_s=0.0)
    with pytest.raises(SchemasUnavailable, match=f"has left {asking.ASKS_MAX} questions without an answer"):
        client.schema(200, wait_s=0.0)
    with pytest.raises(SchemasUnavailable, match="cannot be reached"):
        client.schema(100)
