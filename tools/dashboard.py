"""Write ops/grafana.json, the dashboard of one pipeline. Run by `make docs`, tested for staleness.

Grafana's JSON repeats itself; what a panel asks and says stands once, in tools/dashboard_panels.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.dashboard_panels import OURS, ROWS, WIDTH, Panel  # noqa: E402

FILE = ROOT / "ops" / "grafana.json"

SCHEMA = 39
"""Of Grafana 10; later ones migrate it themselves."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> dict[str, Any]:
    """What Grafana imports."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in ROWS:
        panels.append(_heading(row.title, y, number=len(panels) + 1))
        y += 1
        x = deepest = 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, deepest = 0, y + deepest, 0
            panels.append(_panel(panel, x, y, number=len(panels) + 1))
            x, deepest = x + panel.width, max(deepest, panel.height)
        y += deepest
    return {
        "uid": "lockstep-pipeline",
        "title": "Lockstep: a pipeline",
        "description": "docs/alerts.md says what to do, docs/metrics.md what is shown.",
        "tags": ["lockstep"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "annotations": {"list": [_alarms()]},
        "panels": panels,
    }


def _variables() -> list[dict[str, Any]]:
    pipelines = "label_values(lockstep_state, pipeline)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "pipeline",
            "label": "Pipeline",
            "type": "query",
            "datasource": SOURCE,
            "definition": pipelines,
            "query": {"query": pipelines, "refId": "pipelines"},
            "refresh": 2,
            "sort": 1,
        },
    ]


def _alarms() -> dict[str, Any]:
    return {
        "name": "Alerts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": f'ALERTS{{alertname=~"Lockstep.*",alertstate="firing",{OURS}}}',
        "titleFormat": "{{alertname}}",
        "step": "30s",
    }


def _heading(title: str, y: int, *, number: int) -> dict[str, Any]:
    place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(panel: Panel, x: int, y: int, *, number: int) -> dict[str, Any]:
    place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(panel.asks)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel.colors)},
        "options": dict(panel.options),
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.kind == "timeseries":
        found["custom"] = {
            "drawStyle": "bars" if panel.bars else "line",
            "fillOpacity": 40 if panel.stacked else 8,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none"},
        }
    if panel.steps:
        steps = [{"value": value, "color": color} for value, color in panel.steps]
        found["thresholds"] = {"mode": "absolute", "steps": steps}
    return found


def _overrides(colors: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
        }
        for name, color in colors.items()
    ]


def text() -> str:
    """The file, as it is to be."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
