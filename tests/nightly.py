"""`make nightly`: the long proofs, one after the other, to the end. Prints what each took and what failed.

`python -m tests.nightly --list` names the steps, `python -m tests.nightly STEP …` runs some of them. A step
writes its output to build/nightly/STEP.log and its figures to build/evidence.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence

from tests.evidence import ROOT
from tests.suite.leftovers import MARK, sweep

FOLDER = ROOT / "build" / "nightly"
STORES = ("s3", "hdfs", "gs", "azure")
SHOWN = 20
"""Lines of the output of a failed step that are printed."""


def steps() -> Mapping[str, Sequence[str]]:
    """Name and command of each step, in their order."""
    python = (sys.executable, "-m")
    bench = (*python, "bench", "--rounds", "3")
    return {
        "schedules": (*python, "tests.simulation.soak", "--schedules", "100000"),
        "core-bugs": (*python, "tests.simulation.mutants"),
        "shell-bugs": (*python, "tests.seeded"),
        "marked": (*python, "pytest", "-q", "-m", "nightly", "tests"),
        "faults": (*python, "tests.faults", "--all"),
        **{f"faults-{store}": (*python, "tests.faults", "--all", "--store", store) for store in STORES},
        "fuzz": (*python, "tests.fuzz", "--inputs", "1000000"),
        "fuzz-native": (*python, "tests.fuzz.native", "--seconds", "600"),
        "soak": (*python, "tests.faults.soak", "--minutes", "60"),
        "bench-narrow": (*bench, "--rival", "lockstep", "--rival", "streaming"),
        "bench-upserts": (
            *(*bench, "--workload", "upserts", "--rival", "lockstep"),
            *("--rival", "streaming@4000000"),
        ),
        "bench-freshness": (*python, "bench.freshness", "--rounds", "1"),
        "thresholds": (*python, "bench.thresholds"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description=__doc__)
    parser.add_argument("steps", metavar="STEP", nargs="*", help="steps to run; by default all")
    parser.add_argument("--list", action="store_true", help="print the steps and their commands")
    asked = parser.parse_args()
    known = steps()
    if strange := [name for name in asked.steps if name not in known]:
        parser.error(f"unknown step {', '.join(strange)}. Steps: {', '.join(known)}")
    if asked.list:
        for name, command in known.items():
            say(f"{name:<16} {shlex.join(command)}")
        return 0
    chosen = {name: known[name] for name in asked.steps or known}
    try:
        failed = run_all(chosen)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    say(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    for name in failed:
        say(f"{name}: {shlex.join(chosen[name])}")
    return 1 if failed else 0


def run_all(chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """Run the steps and return the names of those that failed. An interrupt leaves no process behind."""
    os.environ[MARK] = mark = uuid.uuid4().hex
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return [name for name, command in chosen.items() if not run(name, command)]
    except KeyboardInterrupt:
        sweep(mark, patience_s=0.0)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def run(name: str, command: Sequence[str]) -> bool:
    """Run one step. Return whether it succeeded; print its last lines if it did not."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path, began = FOLDER / f"{name}.log", time.monotonic()
    with path.open("wb") as output:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    outcome = f"exit code {done.returncode}" if done.returncode else "ok"
    say(f"{name:<16} {outcome:<14} {(time.monotonic() - began) / 60:.1f} min")
    if done.returncode:
        for line in path.read_text(errors="replace").splitlines()[-SHOWN:]:
            say(f"    {line}")
    return done.returncode == 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
