"""How an object store is reached."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from table.errors import Refused
from table.store.objects.aws import key_provider, region_of, session_of
from table.store.objects.clients import client_of
from table.store.objects.settings import (
    MIB,
    PART_BYTES_LEAST,
    STREAMS_LEAST,
    AskedKeys,
    FixedKeys,
    KeyFile,
    ObjectSettings,
    Profile,
    ProviderChain,
)


def ask() -> FixedKeys:
    return FixedKeys("asked", "asked-secret", "asked-token")


def test_settings_show_no_secret_and_can_be_sent_to_a_worker() -> None:
    settings = ObjectSettings(credentials=FixedKeys("name", "SeCrEt", "ToKeN"))
    assert "SeCrEt" not in repr(settings) and "ToKeN" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
    asked = ObjectSettings(credentials=AskedKeys(ask))
    assert pickle.loads(pickle.dumps(asked)) == asked


def test_keys_come_from_where_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "its secret")
    for credentials, key, token in (
        (FixedKeys("fixed", "secret"), "fixed", None),
        (AskedKeys(ask), "asked", "asked-token"),
        (ProviderChain(), "of the environment", None),
    ):
        keys = key_provider(session_of(ObjectSettings(credentials=credentials))[1])()
        assert (keys["access_key_id"], keys["token"]) == (key, token)


def test_a_profile_of_awss_own_files_is_found_with_its_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path
    (folder / "credentials").write_text("[lake]\naws_access_key_id = filed\naws_secret_access_key = secret\n")
    (folder / "config").write_text("[profile lake]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    settings = ObjectSettings(credentials=Profile("lake"))
    session, keys = session_of(settings)
    assert key_provider(keys)()["access_key_id"] == "filed"
    assert region_of(session, settings) == "eu-central-1"
    with pytest.raises(Refused, match="nobody"):
        session_of(ObjectSettings(credentials=Profile("nobody")))


def test_what_cannot_be_had_is_refused_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(Refused, match="no credentials for S3 were found"):
        client_of("s3a", "lake", ObjectSettings())
    with pytest.raises(Refused, match="is Google's"):
        client_of("s3a", "lake", ObjectSettings(credentials=KeyFile("/x.json")))
    with pytest.raises(Refused, match="no credential of Google's"):
        client_of("gs", "lake", ObjectSettings(credentials=FixedKeys("a", "b")))
    with pytest.raises(Refused, match="no credential of Azure's"):
        client_of("abfss", "box@account", ObjectSettings(credentials=KeyFile("/x.json")))


@pytest.mark.parametrize("bytes_max", [1, 10 * MIB, 64_000_000, 1_000_000_000])
def test_parts_let_several_files_be_written_in_so_much_memory(bytes_max: int) -> None:
    fitting = ObjectSettings().within(bytes_max)
    assert PART_BYTES_LEAST <= fitting.part_bytes <= ObjectSettings().part_bytes
    assert STREAMS_LEAST * fitting.sink_bytes_max <= max(bytes_max, STREAMS_LEAST * 2 * PART_BYTES_LEAST)
