"""Hooks are tried before a run without telling anybody anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.config import Config, from_mapping
from lockstep.hooks.trial import Tried, sent_in_the_clear, try_hooks
from lockstep.launch.local_server import free_port
from tests.hook_receiver import Receiver

SECRET = "correct-horse-battery-staple"


def tried(**hooks: Any) -> Tried:
    (one,) = try_hooks(config_of(**hooks), {"bootstrap.servers": "127.0.0.1:1"})
    assert SECRET not in one.detail
    return one


def config_of(record: dict[str, Any] | None = None, **hooks: Any) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
            "record": record or {"schema": "event_id STRING"},
            "table": {"path": "file:///data/lake/events", "name": "events"},
            "hooks": hooks,
        }
    )


def test_those_that_are_not_configured_are_not_tried() -> None:
    assert list(try_hooks(config_of(), {})) == []


def test_a_webhook_that_answers_is_well_and_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_TOKEN", SECRET)
    with Receiver() as receiver:
        headers = {"Authorization": "Bearer ${env:HOOK_TOKEN}"}
        one = tried(webhook=f"{receiver.url}/{SECRET}", webhook_headers=headers)
        assert (one.name, one.verdict) == ("webhook", "ok") and receiver.asked == 0


def test_one_that_does_not_answer_and_a_secret_that_is_not_there_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOOK_TOKEN", raising=False)
    away = tried(webhook=f"http://127.0.0.1:{free_port()}/{SECRET}")
    assert away.verdict == "failed" and "Connection refused" in away.detail
    assert "HOOK_TOKEN is not set" in tried(webhook="${env:HOOK_TOKEN}").detail


def test_lineage_into_a_file_wants_a_folder(tmp_path: Path) -> None:
    assert tried(openlineage=f"file://{tmp_path}/lineage.json").verdict == "ok"
    assert tried(openlineage=f"file://{tmp_path}/no/lineage.json").verdict == "failed"


def test_a_folder_of_markers_may_be_missing_and_no_file(tmp_path: Path) -> None:
    def looked_at(folder: Path) -> Tried:
        asked = {"complete_folder": f"file://{folder}", "complete_every": "24h"}
        config = config_of(**asked, record={"schema": "event_id STRING", "event_time": "_kafka_timestamp"})
        (one,) = try_hooks(config, {})
        return one

    assert "is not there yet; the run makes it" in looked_at(tmp_path / "markers").detail
    assert looked_at(tmp_path).verdict == "ok" and list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert looked_at(tmp_path / "file").verdict == "failed"


@pytest.mark.parametrize(
    ("address", "clear"),
    [
        ("https://jobs.example.org", False),
        ("http://jobs.example.org", True),
        ("http://10.0.0.1:80/x", True),
        ("http://127.0.0.1:80/x", False),
        ("http://[::1]/x", False),
        ("http://localhost/x", False),
    ],
)
def test_secrets_over_http_are_seen_on_the_way_unless_that_is_within_this_machine(
    address: str, clear: bool
) -> None:
    assert sent_in_the_clear(address) is clear
