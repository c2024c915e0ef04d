"""Each alert fires where it should and nowhere else, as Prometheus' own tool judges; each is documented."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.debian import NotToBeHad, prometheus
from tests.unit.ops.alert_cases import CASES, PIPELINE, QUIET, Case

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "ops" / "alerts.yml"
DOCUMENT = ROOT / "docs" / "alerts.md"
QUIET_AT = (1, 5, 12, 20, 40, 90)
PROMTOOL_S_MAX = 60


@pytest.fixture(scope="module")
def promtool() -> Path:
    try:
        return prometheus() / "promtool"
    except NotToBeHad as error:
        pytest.skip(str(error))


def alerts() -> dict[str, Mapping[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


NAMES = tuple(alerts())


def _series(given: Mapping[str, str]) -> list[dict[str, str]]:
    """Every one of the pipeline, but for what Prometheus says itself."""
    found = []
    for name, values in given.items():
        plain, _, seen_by = name.partition("@")
        metric, _, labels = plain.removesuffix("}").partition("{")
        ours = [f'pipeline="{PIPELINE}"'] if metric.startswith("lockstep_") else []
        own = [labels] if labels else []
        by = [f'instance="{seen_by}"'] if seen_by else []
        found.append({"series": f"{metric}{{{','.join(ours + own + by)}}}", "values": values})
    return found


def _asked(alert: str, at_minutes: Sequence[int], *, fires: bool) -> list[dict[str, Any]]:
    expected = [{"labels": "{}", "value": 1}] if fires else []
    asked = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    return [{"expr": asked, "eval_time": f"{one}m", "exp_samples": expected} for one in at_minutes]


def _play(promtool: Path, folder: Path, tests: Sequence[Mapping[str, Any]]) -> str:
    """What does not come out as it should; empty where all does."""
    file = folder / "tests.json"  # JSON is YAML
    plan = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(plan), encoding="utf-8")
    done = subprocess.run(
        [promtool, "test", "rules", file], capture_output=True, text=True, timeout=PROMTOOL_S_MAX, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _test(case: Case) -> dict[str, Any]:
    asked = _asked(case.alert, case.fires, fires=True) + _asked(case.alert, case.silent, fires=False)
    return {
        "interval": "1m",
        "name": case.says,
        "input_series": _series(case.series),
        "promql_expr_test": asked,
    }


def test_promtool_takes_the_rules(promtool: Path) -> None:
    for file in (RULES, ROOT / "ops" / "recording.yml"):
        done = subprocess.run(
            [promtool, "check", "rules", "--lint=all", "--lint-fatal", file],
            capture_output=True,
            text=True,
            timeout=PROMTOOL_S_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.says}")
def test_an_alert_fires_where_it_should_and_is_silent_elsewhere(
    promtool: Path, tmp_path: Path, case: Case
) -> None:
    assert _play(promtool, tmp_path, [_test(case)]) == ""


@pytest.mark.parametrize("scene", QUIET)
def test_what_is_as_it_should_be_alarms_nobody(promtool: Path, tmp_path: Path, scene: str) -> None:
    asked = [one for name in NAMES for one in _asked(name, QUIET_AT, fires=False)]
    test = {"interval": "1m", "input_series": _series(QUIET[scene]), "promql_expr_test": asked}
    assert _play(promtool, tmp_path, [test]) == ""


def test_every_alert_is_shown_both_ways() -> None:
    assert {case.alert for case in CASES if case.fires} == set(NAMES)
    assert {case.alert for case in CASES if case.silent} == set(NAMES)


def test_a_case_that_does_not_come_out_is_seen(promtool: Path, tmp_path: Path) -> None:
    """Else all the others would prove nothing."""
    wrong = Case(alert="LockstepHalted", says="", series={"lockstep_halted": "1+0x20"}, silent=(5,))
    assert "FAILED" in _play(promtool, tmp_path, [_test(wrong)])


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_says_how_urgent_it_is_what_it_is_of_and_where_to_read_on(name: str) -> None:
    rule = alerts()[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"
    of = {"LockstepNotScraped": "instance", "LockstepFileOld": "file"}.get(name, "pipeline")
    assert all(f"$labels.{of}" in rule["annotations"][part] for part in ("summary", "description"))


def documented() -> dict[str, list[str]]:
    """By severity, as the document's two chapters have them."""
    _, critical, warning = re.split(r"^## .*$", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {"critical": critical, "warning": warning}
    return {severity: re.findall(r"^### (\S+)$", text, re.MULTILINE) for severity, text in found.items()}


def test_the_document_and_the_rules_name_the_same_alerts_with_the_same_urgency() -> None:
    ours = {severity: set() for severity in ("critical", "warning")}
    for name, rule in alerts().items():
        ours[rule["labels"]["severity"]].add(name)
    assert {severity: set(names) for severity, names in documented().items()} == ours
    assert sum(map(len, documented().values())) == len(NAMES)


def test_every_section_says_what_it_means_where_to_look_and_what_to_do() -> None:
    sections = re.split(r"^### (?=\S+$)", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    parts = ("**It means:**", "**Look:**", "**Do:**")
    assert [one.split()[0] for one in sections if not all(part in one for part in parts)] == []


def test_every_alert_that_the_document_refers_to_is_one() -> None:
    assert set(re.findall(r"\*(Lockstep\w+)\*", DOCUMENT.read_text(encoding="utf-8"))) <= set(NAMES)


def test_every_place_that_the_document_leads_to_is_there() -> None:
    for place in re.findall(r"\]\(([^)]+)\)", DOCUMENT.read_text(encoding="utf-8")):
        file, _, anchor = place.partition("#")
        target = DOCUMENT.parent / file
        assert target.exists(), place
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}, (
                place
            )
