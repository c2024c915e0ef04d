"""Rules and dashboard ask only for metrics that are there, by labels that these have."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import promql_parser
import pytest
import yaml

from lockstep.watch.metric_table import HISTOGRAM, METRICS, PIPELINE

ROOT = Path(__file__).resolve().parents[3]
OPS = ROOT / "ops"
OTHERS: Mapping[str, frozenset[str]] = {
    "up": frozenset(),
    "node_textfile_mtime_seconds": frozenset({"file"}),
    "ALERTS": frozenset({"alertname", "alertstate", "pipeline"}),
}
"""What Prometheus says itself, and node_exporter of files of metrics."""
BY = promql_parser.AggModifierType.By
BY_PROMETHEUS = frozenset({"job", "instance"})
"""Labels that each series has from its scrape."""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "tools" / "dashboard.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def rules(file: str) -> tuple[Mapping[str, Any], ...]:
    groups = yaml.safe_load((OPS / file).read_text(encoding="utf-8"))["groups"]
    return tuple(rule for group in groups for rule in group["rules"])


@cache
def board() -> Mapping[str, Any]:
    return json.loads((OPS / "grafana.json").read_text(encoding="utf-8"))


def expressions() -> Iterator[tuple[str, str]]:
    """(where, what is asked), of everything that is delivered."""
    for file in ("alerts.yml", "recording.yml"):
        for rule in rules(file):
            yield f"{file}: {rule.get('alert') or rule['record']}", rule["expr"]
    for panel in board()["panels"]:
        for target in panel.get("targets", ()):
            asked = target["expr"].replace("$__rate_interval", "1m")
            yield f"grafana.json: {panel['title']}", asked
    for annotation in board()["annotations"]["list"]:
        yield f"grafana.json: {annotation['name']}", annotation["expr"]


ASKED = tuple(expressions())


def within(text: str, kind: type) -> list[Any]:
    """The parts of this kind that an expression consists of. Raises `ValueError` where it is none."""
    found: list[Any] = []
    promql_parser.walk(
        promql_parser.parse(text), lambda part: found.append(part) if isinstance(part, kind) else None
    )
    return found


def selectors(text: str) -> list[Any]:
    ranges = [one.vector_selector for one in within(text, promql_parser.MatrixSelector)]
    return within(text, promql_parser.VectorSelector) + ranges


def recorded() -> dict[str, frozenset[str]]:
    """Rules' own, by the labels that they are aggregated by."""
    found = {}
    for file in ("alerts.yml", "recording.yml"):
        for rule in rules(file):
            if "record" in rule:
                grouped = within(rule["expr"], promql_parser.AggregateExpr)
                kept = [one.modifier.labels for one in grouped if one.modifier.type == BY]
                found[rule["record"]] = frozenset().union(*kept)
    return found


def known() -> dict[str, frozenset[str]]:
    """Every series that is there, by the labels that it may have."""
    ours: dict[str, frozenset[str]] = {}
    for metric in METRICS:
        labels = frozenset({PIPELINE, *metric.labels})
        if metric.kind == HISTOGRAM:
            ours[f"{metric.name}_bucket"] = labels | {"le"}
            ours |= {f"{metric.name}_{part}": labels for part in ("sum", "count")}
        else:
            ours[metric.name] = labels
    return ours | recorded() | dict(OTHERS)


@pytest.mark.parametrize(
    ("where", "text"), ASKED, ids=lambda one: one if ".json" in one or ".yml" in one else ""
)
def test_what_is_asked_for_is_there(where: str, text: str) -> None:
    asked = selectors(text)
    assert asked
    assert [one.name for one in asked if one.name not in known()] == []


@pytest.mark.parametrize(
    ("where", "text"), ASKED, ids=lambda one: one if ".json" in one or ".yml" in one else ""
)
def test_labels_that_are_asked_for_are_the_metric_s_own(where: str, text: str) -> None:
    for selector in selectors(text):
        matched = {matcher.name for matcher in selector.matchers.matchers} - BY_PROMETHEUS
        assert matched <= known()[selector.name], selector.name
    for part in within(text, promql_parser.AggregateExpr):
        below = frozenset().union(*(known()[one.name] for one in selectors(part.prettify())))
        grouped = set(part.modifier.labels) if part.modifier is not None else set()
        assert grouped <= below | BY_PROMETHEUS, part.prettify()


def test_a_legend_names_labels_that_the_answer_has() -> None:
    for panel in board()["panels"]:
        for target in panel.get("targets", ()):
            asked = target["expr"].replace("$__rate_interval", "1m")
            grouped = set().union(
                *(one.modifier.labels for one in within(asked, promql_parser.AggregateExpr) if one.modifier)
            )
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped, panel["title"]


def test_every_query_of_a_panel_is_of_the_chosen_pipeline_and_source_of_data() -> None:
    for panel in board()["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
            for selector in selectors(target["expr"].replace("$__rate_interval", "1m")):
                assert "pipeline" in {matcher.name for matcher in selector.matchers.matchers}, panel["title"]


def test_what_alerts_ask_for_is_shown_too() -> None:
    """Whoever is woken finds on the dashboard what it was about."""
    shown = {one.name for where, text in ASKED if where.startswith("grafana") for one in selectors(text)}
    asked = {one.name for where, text in ASKED if where.startswith("alerts") for one in selectors(text)}
    assert asked - shown - OTHERS.keys() == {"pipeline:lockstep_at_work"}


def test_panels_lie_beside_each_other_and_not_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= own
    assert len({panel["id"] for panel in board()["panels"]}) == len(board()["panels"])


def test_the_dashboard_is_not_stale(generator: ModuleType) -> None:
    assert (OPS / "grafana.json").read_text(encoding="utf-8") == generator.text(), "run `make docs`"
