"""`python -m tests.fuzz --inputs 1000000` tries so many inputs of each target, on every core.

A failure prints its input and the one command that shows it again. A crash of the process that tries them
(a decoder in C++ may crash) is found by the seed that it was at.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from random import Random

import click

from tests import evidence
from tests.fuzz import configuration, control, records
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target for target in (*control.TARGETS, *configuration.TARGETS, *records.TARGETS)
}
CHUNK = 20
CHUNK_S = 300
FAILURES_MAX = 20
ERROR_CHARACTERS = 1_000


def try_seed(target: Target, seed: int) -> int:
    """All inputs of one seed; raises where one is answered wrongly."""
    return target.round(Random(seed))


@dataclass(slots=True)
class Tally:
    """What was tried of one target."""

    inputs: int = 0
    failures: list[str] = field(default_factory=list)


def _chunk(target: Target, first: int) -> tuple[int, str]:
    """`CHUNK` seeds in a process of their own: how many inputs, and the failure."""
    command = [sys.executable, "-m", "tests.fuzz", "--target", target.name, "--seed", str(first)]
    try:
        done = subprocess.run(
            [*command, "--seeds", str(CHUNK)], capture_output=True, text=True, timeout=CHUNK_S, check=False
        )
        said, ended = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        said, ended = (error.stdout or b"").decode(errors="replace"), -1
        return 0, f"it does not end: {_at(said, command)}"
    inputs = sum(int(line.split()[2]) for line in said.splitlines() if line.startswith("done "))
    if ended == 0:
        return inputs, ""
    why = f"the process died with signal {-ended}" if ended < 0 else done.stderr.strip()[-ERROR_CHARACTERS:]
    return inputs, f"{_at(said, command)}: {why}"


def _at(said: str, command: list[str]) -> str:
    """The command for the seed that was begun last."""
    begun = [line.split()[1] for line in said.splitlines() if line.startswith("seed ")]
    return " ".join(["python", *command[1:-1], begun[-1] if begun else command[-1]])


def _walk(target: Target, inputs: int, first: int, jobs: int) -> Tally:
    tally, guard, chunks = Tally(), threading.Lock(), iter(range(first, first + 10**9, CHUNK))

    def work() -> None:
        while True:
            with guard:
                if tally.inputs >= inputs or len(tally.failures) >= FAILURES_MAX:
                    return
                seed = next(chunks)
            tried, failure = _chunk(target, seed)
            with guard:
                tally.inputs += tried
                if failure:
                    tally.failures.append(failure)
                    click.echo(f"\n{target.name}: {failure}")

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


@click.command()
@click.option("--inputs", type=int, help="So many inputs in all, shared by the targets; leaves fuzz.json.")
@click.option("--jobs", type=int, default=os.cpu_count(), show_default=True, help="Processes at a time.")
@click.option("--target", "name", type=click.Choice(list(TARGETS)), help="This target only.")
@click.option("--seed", type=int, help="Try this seed and say what is wrong.")
@click.option("--seeds", type=int, default=1, help="So many seeds from --seed on.")
def main(inputs: int | None, jobs: int, name: str | None, seed: int | None, seeds: int) -> None:
    """Fuzz what comes from outside: control topic, calls, configuration, records."""
    if inputs is None:
        if name is None or seed is None:
            raise click.UsageError("give --inputs, or --target and --seed")
        for one in range(seed, seed + seeds):
            click.echo(f"seed {one}")
            sys.stdout.flush()
            click.echo(f"done {one} {try_seed(TARGETS[name], one)}")
        return
    first = secrets.randbelow(2**40) if seed is None else seed
    click.echo(f"seeds from {first}")
    chosen = [TARGETS[name]] if name else list(TARGETS.values())
    figures: dict[str, object] = {"first_seed": first}
    rows, began_s = [], time.monotonic()
    for target in chosen:
        tally = _walk(target, inputs // len(chosen), first, jobs)
        rows.append({"target": target.name, "inputs": tally.inputs, "failures": len(tally.failures)})
        click.echo(f"{target.name:22} {tally.inputs:>10,} inputs, {len(tally.failures)} failures")
    figures |= {
        "inputs": sum(row["inputs"] for row in rows),  # type: ignore[misc]
        "failures": sum(row["failures"] for row in rows),  # type: ignore[misc]
        "seconds": round(time.monotonic() - began_s),
        "targets": rows,
    }
    passed = not figures["failures"]
    evidence.write(
        "fuzz",
        command=f"python -m tests.fuzz --inputs {inputs} --seed {first}",
        passed=passed,
        figures=figures,
    )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
