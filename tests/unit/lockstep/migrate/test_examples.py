"""The documented examples of each product, there and back: a pipeline's file that a run would take."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import javaproperties
import pytest

from lockstep.commands.migrate import translated
from lockstep.config import load
from lockstep.config.kafka import checked_kafka
from lockstep.migrate.given import read_given
from lockstep.migrate.kinds import KINDS, recognised
from lockstep.migrate.report import Report
from lockstep.migrate.sheet import Verdict
from lockstep.output import ConsoleOutput
from tests.unit.lockstep.migrate.theirs import EXAMPLES, Example


def made(example: Example, folder: Path, *, as_json: bool = False) -> Report:
    """As the command makes it."""
    source, worker = (
        folder / ("theirs.json" if as_json else "theirs.properties"),
        folder / "worker.properties",
    )
    if as_json:
        config = {name: value for name, value in example.given.items() if name != "name"}
        source.write_text(json.dumps({"name": example.given.get("name", ""), "config": config}))
    else:
        source.write_text(javaproperties.dumps(example.given))
    worker.write_text(javaproperties.dumps(example.worker))
    return translated(
        source, worker if example.worker else None, None, example.options, example.said, str(folder / "out")
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_documented_example_becomes_a_file_that_loads(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    assert recognised({**example.given, **dict.fromkeys(example.options, "")}) == example.kind
    report = made(example, tmp_path)
    left = {name for name in report.missing if not name.startswith("environment ")}
    assert not left and not report.problems
    path = tmp_path / "pipeline.toml"
    path.write_text(report.toml)
    config = load(path, environment={}).to_mapping()
    for setting, value in example.expected.items():
        section, _, key = setting.partition(".")
        assert config[section][key] == value, setting


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_of_an_example_is_dropped_or_unknown(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    report = made(example, tmp_path)
    said = {line.name for line in report.lines}
    assert set(example.given) <= said
    assert {word for word in example.options if word.startswith("--")} - said <= {
        *("--packages", "--class", "--hoodie-conf")
    }
    assert [line.name for line in report.lines if line.verdict is Verdict.UNKNOWN] == []
    assert all(line.why for line in report.lines if line.verdict in (Verdict.NO_EQUAL, Verdict.DIFFERS))


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_secret_of_an_example_is_written_or_shown(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = made(EXAMPLES[name], tmp_path)
    ConsoleOutput().document(report.to_json(), report.to_text)
    assert "not-to-be-seen" not in report.toml + json.dumps(report.to_json()) + capsys.readouterr().out


def test_a_connector_in_json_says_the_same_as_its_properties(tmp_path: Path) -> None:
    for name, example in EXAMPLES.items():
        if "name" in example.given:
            plain, as_json = made(example, tmp_path), made(example, tmp_path, as_json=True)
            assert sorted(map(str, plain.lines)) == sorted(map(str, as_json.lines)), name
            (tmp_path / "flat.json").write_text(json.dumps(dict(example.given)))
            assert read_given(tmp_path / "flat.json") == example.given


def test_a_worker_with_a_password_becomes_properties_that_librdkafka_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    security = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'x.ScramLoginModule required username="me" password="not-to-be-seen";',
        "ssl.endpoint.identification.algorithm": "https",
        "fetch.max.wait.ms": "200",
    }
    example = EXAMPLES["s3, the quick start"]
    worker = {**example.worker, **{f"consumer.{name}": value for name, value in security.items()}}
    report = made(replace(example, worker=worker), tmp_path)
    assert "not-to-be-seen" not in report.toml
    path = tmp_path / "pipeline.toml"
    path.write_text(report.toml)
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "a")
    assert checked_kafka(load(path))["sasl.password"] == "a"


def test_every_kind_has_an_example() -> None:
    assert {example.kind for example in EXAMPLES.values()} == set(KINDS)
