"""How long Lockstep's commits took, from the control topic. Pure but for the call that reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.rivals.base import ROOT
from lockstep.errors import Failed

READ_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One committed transaction, by the control topic's timestamps (Unix epoch).

    `end_ms`: END was sent; `written_ms`: the last worker had reported its files; `ack_ms`: it was committed.
    """

    transaction: str
    end_ms: int
    written_ms: int
    ack_ms: int

    @property
    def commit_ms(self) -> int:
        """END to ACK."""
        return self.ack_ms - self.end_ms


def endings(lines: Iterable[str]) -> list[Ending]:
    """From the lines of `lockstep events --output json`, in the order of their ACKs."""
    ended: dict[str, int] = {}
    written: dict[str, int] = {}
    found: dict[str, Ending] = {}
    for line in lines:
        message = json.loads(line)
        transaction, time_ms = message["transaction"], message["time"]
        match message["type"]:
            case "END_COMMIT":
                ended.setdefault(transaction, time_ms)  # said again to whoever missed it
            case "WRITE_STATUS":
                written[transaction] = time_ms
            case "ACK_COMMIT" if transaction in ended and transaction not in found:
                end_ms = ended[transaction]
                written_ms = min(max(written.get(transaction, end_ms), end_ms), time_ms)
                found[transaction] = Ending(
                    transaction=transaction, end_ms=end_ms, written_ms=written_ms, ack_ms=time_ms
                )
    return list(found.values())


def aborted(lines: Iterable[str]) -> int:
    """How many transactions were given up, from the same lines."""
    messages = map(json.loads, lines)
    return len({one["transaction"] for one in messages if one["type"] == "ABORT_COMMIT"})


def read(config: Path) -> list[Ending]:
    """Every committed transaction that the pipeline's control topic still tells of. Raises `Failed`."""
    return endings(read_lines(config))


def read_lines(config: Path) -> list[str]:
    """Every message that the pipeline's control topic still has, a JSON object each. Raises `Failed`."""
    command = [sys.executable, "-m", "lockstep.cli", "events", "-c", str(config)]
    command += ["--from-beginning", "--output", "json"]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=READ_TIMEOUT_S,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"`lockstep events` did not end within {READ_TIMEOUT_S:.0f} s.") from error
    if done.returncode != 0:
        raise Failed(f"`lockstep events` ended with {done.returncode}: {done.stderr[-1_000:]}")
    return [line for line in done.stdout.splitlines() if line.startswith("{")]
