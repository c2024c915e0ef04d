"""What the configuration says of the page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lockstep.commands.ui import load_all, readable, started_here
from lockstep.config import Config, InvalidConfiguration, from_json, from_mapping
from lockstep.driver.rundir import run_files, write_run_file
from lockstep.errors import ConfigError
from lockstep.output import ConsoleOutput

REFERENCE = "${env:PAGE}"
SECRET = "a-token-of-some-length"


def config_of(**ui: Any) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": "file:///data/lake/events", "name": "events"},
            "ui": ui,
        }
    )


def problems_of(**ui: Any) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(**ui)
    return str(caught.value)


def test_by_default_there_is_a_page_for_this_machine() -> None:
    ui = config_of().ui
    assert (ui.enabled, ui.bind, ui.port, ui.token, ui.resolved_token()) == (True, "127.0.0.1", 8420, "", "")


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7"])
def test_a_page_for_others_wants_a_token_whether_the_driver_serves_it_or_not(
    bind: str, enabled: bool
) -> None:
    assert "is open to the network" in problems_of(bind=bind, enabled=enabled)
    assert config_of(bind=bind, enabled=enabled, token=REFERENCE).ui.bind == bind


def test_a_page_that_takes_orders_wants_a_token_wherever_it_is() -> None:
    assert config_of().ui.control is False
    assert "lets readers of the page stop the run" in problems_of(control=True)
    assert config_of(control=True, token=REFERENCE).ui.control is True


def test_a_page_that_shows_values_wants_a_token_wherever_it_is() -> None:
    assert config_of().ui.show_values is False
    assert "lets readers of the page see values of records" in problems_of(show_values=True)
    assert config_of(show_values=True, token=REFERENCE).ui.show_values is True


def test_an_address_is_an_address() -> None:
    assert "is no address to listen on" in problems_of(bind="example.org")
    assert "is no address to listen on" in problems_of(bind="127.0.0.1:8420")
    assert config_of(bind="localhost").ui.bind == "localhost"
    assert config_of(bind="0:0:0:0:0:0:0:1").ui.bind == "::1"


def test_a_token_is_a_reference_and_is_resolved_where_it_is_used() -> None:
    assert "not a reference to a secret" in problems_of(token=SECRET)
    assert SECRET not in problems_of(token=SECRET)
    config = config_of(token=REFERENCE)
    assert config.ui.resolved_token({"PAGE": f" {SECRET}\n"}) == SECRET
    assert SECRET not in config.to_json()
    assert from_json(config.to_json()) == config
    with pytest.raises(ConfigError, match="PAGE is not set"):
        config.ui.resolved_token({})


def test_an_empty_secret_is_no_token() -> None:
    with pytest.raises(ConfigError, match="empty secret"):
        config_of(token=REFERENCE).ui.resolved_token({"PAGE": "  \n"})


def written(folder: Path, name: str, more: str = "") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(
        f"""
[pipeline]
id = "{name}"
[source]
bootstrap_servers = "127.0.0.1:9092"
topics = ["{name}"]
[record]
schema = "event_id STRING"
[table]
path = "file:///data/lake/{name}"
name = "{name}"
{more}
""",
        encoding="utf-8",
    )
    return path


def test_the_command_does_not_open_to_the_network_without_a_token(tmp_path: Path) -> None:
    """Neither by its option, nor where the file says that the driver serves no page."""
    with pytest.raises(InvalidConfiguration, match="is open to the network"):
        load_all(((written(tmp_path, "a"), ()),), port=None, bind="0.0.0.0")
    disabled = written(tmp_path, "b", '[ui]\nenabled = false\nbind = "0.0.0.0"')
    with pytest.raises(InvalidConfiguration, match="is open to the network"):
        load_all(((disabled, ()),), port=None, bind=None)


def test_the_first_of_several_files_says_where_the_page_is(tmp_path: Path) -> None:
    first, second = written(tmp_path, "a", "[ui]\nport = 8500"), written(tmp_path, "b", "[ui]\nport = 8600")
    configs = load_all(((first, ()), (second, ())), port=None, bind=None)
    assert [one.pipeline.id for one in configs] == ["a", "b"]
    assert configs[0].ui.port == 8500
    assert load_all(((first, ()), (second, ())), port=9000, bind="::1")[0].ui.port == 9000
    with pytest.raises(ConfigError, match="of one pipeline"):
        load_all(((first, ()), (first, ())), port=None, bind=None)


def test_a_pipeline_is_shown_only_to_readers_who_show_its_own_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading a page with the token of another pipeline, or without one, would show values and state."""
    monkeypatch.setenv("OWN", "a-token-of-sixteen-and-more")
    monkeypatch.setenv("OTHER", "another-token-of-sixteen")
    own = '[ui]\nshow_values = true\ntoken = "${env:OWN}"'
    paths = {
        "open": written(tmp_path, "open"),
        "guarded": written(tmp_path, "guarded", own),
        "like": written(tmp_path, "like", own),
        "other": written(tmp_path, "other", '[ui]\ntoken = "${env:OTHER}"'),
    }

    def shown(*names: str) -> list[str]:
        configs = load_all([(paths[name], ()) for name in names], port=None, bind=None)
        return [config.pipeline.id for config in readable(configs, ConsoleOutput())]

    assert shown("open", "guarded", "like") == ["open"]
    noted = capsys.readouterr().out
    assert "pipeline guarded is left out: its readers show another ui.token" in noted
    assert "pipeline like is left out" in noted
    assert shown("guarded", "open", "like", "other") == ["guarded", "open", "like"]
    assert "pipeline other is left out" in capsys.readouterr().out


def test_without_a_file_the_pipelines_that_were_started_here_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    output = ConsoleOutput()
    with pytest.raises(ConfigError, match="name a pipeline's file with -c"):
        started_here(output)
    first, second = written(tmp_path, "a"), written(tmp_path, "b")
    for name, path in (("b", second), ("a", first), ("gone", tmp_path / "gone.toml"), ("c", first)):
        write_run_file(name, run=name, address="x", token="t", config=path, sets=("ui.port=8500",))
    write_run_file("older", run="r", address="x", token="t")
    assert started_here(output) == [(first, ("ui.port=8500",)), (second, ("ui.port=8500",))]
    assert [one.ui.port for one in load_all(started_here(output), port=None, bind=None)] == [8500, 8500]
    said = capsys.readouterr().out
    assert "pipeline c is left out" in said and "is of pipeline a now" in said
    assert "pipeline gone is left out" in said and "pipeline older is left out" in said


def test_of_the_pipelines_that_were_started_here_none_loses_its_token_and_none_takes_the_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PAGE", SECRET)
    analytics = written(tmp_path, "analytics")
    payroll = written(tmp_path, "payroll", f'[ui]\ntoken = "{REFERENCE}"')
    away = written(tmp_path, "away", '[ui]\ntoken = "${env:NOT_SET_HERE}"')
    elsewhere = written(tmp_path, "elsewhere", '[source.kafka]\n"sasl.password" = "${env:NOT_SET_HERE}"')
    for path in (analytics, payroll, away, elsewhere):
        write_run_file(path.stem, run="r", address="x", token="t", config=path)
    configs = load_all(started_here(ConsoleOutput()), port=None, bind=None)
    assert [one.pipeline.id for one in readable(configs, ConsoleOutput())] == ["analytics"]
    said = capsys.readouterr().out
    assert "pipeline payroll is left out: its readers show another ui.token" in said
    assert "pipeline away is left out" in said and "pipeline elsewhere is left out" in said
    assert SECRET not in said


def test_what_another_user_has_left_is_not_shown_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    write_run_file("a", run="r", address="x", token="t", config=written(tmp_path, "a"))
    assert [one.pipeline for one in run_files()] == ["a"]
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    assert run_files() == []
