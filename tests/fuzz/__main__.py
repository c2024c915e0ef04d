"""`python -m tests.fuzz --inputs 1000000` tries so many inputs, on every core.

They are tried in processes of their own, since a decoder in C++ may crash: a process that dies or does not
end is a failure like any other. A failing case is made smaller and written down, with the one command that
tries it again.
"""

from __future__ import annotations

import ast
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import click

from tests import evidence
from tests.fuzz import (
    avro,
    avro_native,
    columns,
    configuration,
    control,
    cores,
    protobuf,
    protobuf_native,
    records,
    timeline,
)
from tests.fuzz.shrink import limit_memory, outcome, shrink
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *records.TARGETS,
        *columns.TARGETS,
        *avro.TARGETS,
        *avro_native.TARGETS,
        *protobuf.TARGETS,
        *protobuf_native.TARGETS,
        *control.TARGETS,
        *cores.TARGETS,
        *configuration.TARGETS,
        *timeline.TARGETS,
    )
}
SHARES = {"decoder": 8, "coordinates": 4, "control topic": 2, "configuration": 2}
"""Of the inputs, where it is more than one share; records are what the table consists of."""
PROCESS_S = 600
SHRINK_S = 60
FAILURES_MAX = 10
ERROR_CHARACTERS = 1_000
CASES = Path("build") / "fuzz"


# --- one process --------------------------------------------------------------------------------------


def _try_seeds(target: Target, first: int, count: int) -> None:
    """Say each seed before it is tried, so that whoever reads knows where the process died."""
    limit_memory()
    for seed in range(first, first + count):
        click.echo(f"seed {seed}")
        sys.stdout.flush()
        click.echo(f"done {target.try_seed(seed)}")


def _write_down(target: Target, seed: int) -> None:
    """The seed's case, made smaller and written to a file."""
    case = target.make(Random(seed), target.size)
    how = outcome(target, case)
    if not how:
        click.echo("this seed alone does not fail")
        return
    small = shrink(case, lambda one: outcome(target, one) == how, time_s=SHRINK_S)
    CASES.mkdir(parents=True, exist_ok=True)
    path = CASES / f"{target.name.replace(' ', '-')}-{seed}.txt"
    path.write_text(repr(small), encoding="utf-8", errors="surrogatepass")
    click.echo(f"{how}: {repr(small)[:ERROR_CHARACTERS]}")
    click.echo(f"  python -m tests.fuzz --target {target.name!r} --case {path}")


def _read_case(path: Path) -> Any:
    return ast.literal_eval(path.read_text(encoding="utf-8", errors="surrogatepass"))


# --- many processes -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What was tried of one target."""

    inputs: int = 0
    failures: list[str] = field(default_factory=list)


def _process(target: Target, first: int) -> tuple[int, str]:
    """Some seeds in a process of their own: how many inputs, and the failure."""
    command = [sys.executable, "-m", "tests.fuzz", "--target", target.name, "--seed", str(first)]
    try:
        done = subprocess.run(
            [*command, "--seeds", str(target.seeds)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROCESS_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
        return _inputs(said), f"it does not end: {_at(said, first)}"
    inputs = _inputs(done.stdout)
    if done.returncode == 0:
        return inputs, ""
    smaller = subprocess.run(
        [*command[:-1], str(_seed(done.stdout, first)), "--shrink"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PROCESS_S,
        check=False,
    )
    ended = f"signal {-done.returncode}" if done.returncode < 0 else done.stderr.strip()[-ERROR_CHARACTERS:]
    return inputs, f"{_at(done.stdout, first)}: {ended}\n{smaller.stdout}{smaller.stderr[-ERROR_CHARACTERS:]}"


def _inputs(said: str) -> int:
    return sum(int(line.split()[1]) for line in said.splitlines() if line.startswith("done "))


def _seed(said: str, first: int) -> int:
    """The seed that was begun last."""
    begun = [line.split()[1] for line in said.splitlines() if line.startswith("seed ")]
    return int(begun[-1]) if begun else first


def _at(said: str, first: int) -> str:
    return f"seed {_seed(said, first)}"


def _walk(target: Target, inputs: int, first: int, jobs: int) -> Tally:
    tally, guard = Tally(), threading.Lock()
    starts: Iterator[int] = iter(range(first, first + 2**40, target.seeds))

    def work() -> None:
        while True:
            with guard:
                if tally.inputs >= inputs or len(tally.failures) >= FAILURES_MAX:
                    return
                seed = next(starts)
            tried, failure = _process(target, seed)
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


def _all(chosen: list[Target], inputs: int, first: int, jobs: int) -> dict[str, Any]:
    """The figures of a run."""
    shares = sum(SHARES.get(target.name, 1) for target in chosen)
    rows: list[dict[str, Any]] = []
    began_s = time.monotonic()
    for target in chosen:
        wanted = -(-inputs * SHARES.get(target.name, 1) // shares)
        tally = _walk(target, wanted, first, jobs)
        click.echo(f"{target.name:24}{tally.inputs:>12,} inputs {len(tally.failures):>4} failures")
        rows.append({"target": target.name, "inputs": tally.inputs, "failures": len(tally.failures)})
    return {
        "inputs": sum(row["inputs"] for row in rows),
        "failures": sum(row["failures"] for row in rows),
        "first_seed": first,
        "duration_s": round(time.monotonic() - began_s),
        "targets": rows,
    }


@click.command()
@click.option("--inputs", type=int, help="So many inputs in all; leaves fuzz.json.")
@click.option("--jobs", type=int, default=os.cpu_count(), show_default=True, help="Processes at a time.")
@click.option("--target", "name", type=click.Choice(list(TARGETS)), help="This target only.")
@click.option("--seed", type=int, help="The first seed; without --inputs: try it and say what is wrong.")
@click.option("--seeds", type=int, default=1, help="So many seeds from --seed on.")
@click.option("--shrink", "smaller", is_flag=True, help="Make the seed's failing case smaller and keep it.")
@click.option(
    "--case", "path", type=click.Path(path_type=Path, exists=True), help="Try the case in this file."
)
def main(
    inputs: int | None,
    jobs: int,
    name: str | None,
    seed: int | None,
    seeds: int,
    smaller: bool,
    path: Path | None,
) -> None:
    """Fuzz what comes from outside: records, control topic, calls, configuration, the table's timeline."""
    if inputs is not None:
        first = secrets.randbelow(2**40) if seed is None else seed
        click.echo(f"seeds from {first}")
        figures = _all([TARGETS[name]] if name else list(TARGETS.values()), inputs, first, jobs)
        passed = not figures["failures"]
        if name is None:
            command = f"python -m tests.fuzz --inputs {inputs} --seed {first}"
            evidence.write("fuzz", command=command, passed=passed, figures=figures)
        sys.exit(0 if passed else 1)
    if name is None or (seed is None and path is None):
        raise click.UsageError("give --inputs, or --target with --seed or --case")
    if path is not None:
        click.echo(f"done {TARGETS[name].check(_read_case(path))}")
    elif smaller:
        _write_down(TARGETS[name], seed or 0)
    else:
        _try_seeds(TARGETS[name], seed or 0, seeds)


if __name__ == "__main__":
    main()
