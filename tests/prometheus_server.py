"""A real Prometheus for tests: what it scrapes, the project's alerts with a minute as short as a second."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from lockstep.launch.local_server import HOST, free_port
from tests.debian import prometheus
from tests.harness import await_that

ROOT = Path(__file__).resolve().parent.parent
ANSWER_S_MAX = 60.0
END_S = 60.0
WINDOW_S = 120
"""Instead of half an hour, in which things are counted."""

_MINUTES = re.compile(r"\b(\d+)m\b")
_WINDOW = re.compile(r"\[\d+m\]")
_SECONDS = re.compile(r"(lockstep_(?!observed)\w*seconds\w*(?:\{[^}]*\})?\) > )(\d+)")


def shortened(rules: str) -> str:
    """The rules with seconds for minutes, in what they wait for and in the ages that they ask for.

    Windows in which things are counted are `WINDOW_S`: so long a few restarts of a worker take. How old what
    was seen may be stays: nobody looks at a table every second.
    """
    document = yaml.safe_load(rules)
    for group in document["groups"]:
        for rule in group["rules"]:
            asked = _WINDOW.sub(f"[{WINDOW_S}s]", rule["expr"])
            asked = _SECONDS.sub(lambda found: f"{found[1]}{int(found[2]) // 60}", asked)
            rule["expr"] = _MINUTES.sub(r"\1s", asked)
            if "for" in rule:
                rule["for"] = _MINUTES.sub(r"\1s", rule["for"])
    return yaml.safe_dump(document)


class Prometheus:
    """Scrapes and evaluates every second, from `__enter__` on. `ports`: of the job `lockstep`.

    Raises `tests.debian.NotToBeHad`.
    """

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self._binary = prometheus() / "prometheus"
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        (folder / "recording.yml").write_text((ROOT / "ops" / "recording.yml").read_text(encoding="utf-8"))
        alerts = shortened((ROOT / "ops" / "alerts.yml").read_text(encoding="utf-8"))
        (folder / "alerts.yml").write_text(alerts, encoding="utf-8")
        targets = [f"{HOST}:{port}" for port in ports]
        configuration = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yml", "recording.yml"],
            "scrape_configs": [{"job_name": "lockstep", "static_configs": [{"targets": targets}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")

    def __enter__(self) -> Prometheus:
        command = [
            self._binary,
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={HOST}:{self._port}",
            "--log.level=warn",
        ]
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        await_that("answer of Prometheus", self._is_ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)

    def firing(self) -> dict[str, Mapping[str, Any]]:
        """Alerts that fire now, by name; of one that fires for several, the last."""
        alerts = self._asked("alerts")["alerts"]
        return {one["labels"]["alertname"]: one for one in alerts if one["state"] == "firing"}

    def ever_fired(self) -> set[str]:
        """The names of all that fired since Prometheus is up."""
        asked = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))'
        return {one["metric"]["alertname"] for one in self._asked("query", query=asked)["result"]}

    def value(self, expression: str) -> float | None:
        """Of an expression with one answer; None where it has none."""
        found = self._asked("query", query=expression)["result"]
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def unhealthy(self) -> list[str]:
        """What is wrong with rules and targets, in Prometheus' own words."""
        groups = self._asked("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        targets = self._asked("targets")["activeTargets"]
        wrong = [f"{one['name']}: {one.get('lastError')}" for one in rules if one["health"] == "err"]
        return wrong + [
            f"{one['scrapeUrl']}: {one['lastError']}" for one in targets if one["health"] == "down"
        ]

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self._folder / "prometheus.log").read_text(errors="replace")[-3_000:])
        try:
            with urllib.request.urlopen(
                f"http://{HOST}:{self._port}/-/ready", timeout=ANSWER_S_MAX
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _asked(self, what: str, **arguments: str) -> Any:
        query = urllib.parse.urlencode(arguments)
        url = f"http://{HOST}:{self._port}/api/v1/{what}?{query}"
        with urllib.request.urlopen(url, timeout=ANSWER_S_MAX) as answer:
            return json.load(answer)["data"]
