"""`python -m tests.fuzz.native --seconds 600` fuzzes the native module, so long each target of it.

The targets are those of `native/fuzz`, under libFuzzer, steered by coverage, with AddressSanitizer. They are
compiled as cargo-fuzz compiles them, whose flags these are, with the Rust that is here: a stable one takes
them where it has the sanitizer's runtime, and is told to by `RUSTC_BOOTSTRAP`. The corpus is kept in
`native/fuzz/corpus`, what fails in `native/fuzz/artifacts`. It is a failure, too, where an input of a few
kilobytes takes much memory.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tests import evidence
from tests.fuzz import native_seeds

FOLDER = evidence.ROOT / "native" / "fuzz"
TARGETS = tuple(native_seeds.MAKERS)
SANCOV = (
    "level=4",
    "inline-8bit-counters",
    "pc-table",
    "trace-compares",
)
FLAGS = (
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    *(f"-Cllvm-args=-sanitizer-coverage-{one}" for one in SANCOV),
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "--cfg fuzzing",
)
INPUT_BYTES_MAX = 4_096
MEMORY_MB_MAX = 1_024
ALLOCATION_MB_MAX = 64
"""At once: what is only announced is not allocated, and an input has a few kilobytes."""
INPUT_S_MAX = 60
SAID_CHARACTERS = 4_000
SLACK_S = 300
"""For what is read of the corpus before the time begins to count."""
DONE = re.compile(r"^#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)


class Missing(Exception):
    """Something is not here that fuzzing needs. The sentence says what."""


def toolchain() -> tuple[str, str]:
    """The compiler's version, and what it compiles for. Raises `Missing`."""
    for name in ("cargo", "rustc", "c++"):
        if shutil.which(name) is None:
            raise Missing(
                f"{name} is not here: the native module is fuzzed with cargo, rustc and a compiler of C++"
            )
    said = _said("rustc", "--version", "--verbose")
    (host,) = re.findall(r"^host: (\S+)$", said, re.MULTILINE)
    libraries = Path(_said("rustc", "--print", "target-libdir").strip())
    if not any(libraries.glob("librustc-*_rt.asan.*")):
        raise Missing(
            f"{said.splitlines()[0]} has no AddressSanitizer for {host}: take a toolchain of rustup's"
        )
    return said.splitlines()[0], host


def build(host: str) -> Path:
    """The folder of the compiled targets. It takes minutes."""
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": " ".join(FLAGS)}
    command = ["cargo", "build", "--release", "--locked", "--bins", "--target", host]
    # With --target, scripts and macros, which run in the compiler, are compiled without these flags
    subprocess.run(command, cwd=FOLDER, env=environment, check=True)
    return FOLDER / "target" / host / "release"


def fuzz(target: str, binary: Path, seconds: int) -> dict[str, Any]:
    """One target's figures."""
    corpus, artifacts = FOLDER / "corpus" / target, FOLDER / "artifacts" / target
    native_seeds.write(target, corpus)
    artifacts.mkdir(parents=True, exist_ok=True)
    before = set(artifacts.iterdir())
    command = [
        *(str(binary), str(corpus)),
        *(f"-max_total_time={seconds}", f"-max_len={INPUT_BYTES_MAX}", f"-timeout={INPUT_S_MAX}"),
        *(f"-rss_limit_mb={MEMORY_MB_MAX}", f"-malloc_limit_mb={ALLOCATION_MB_MAX}"),
        *(f"-artifact_prefix={artifacts}/", "-print_final_stats=1"),
    ]
    code, said = _played(command, seconds + SLACK_S)
    crashes = sorted(set(artifacts.iterdir()) - before)
    if code or crashes:
        click.echo(said[-SAID_CHARACTERS:], err=True)
        for crash in crashes:
            click.echo(f"  again: {binary} {crash}", err=True)
    failures = max(len(crashes), int(code != 0))
    return {"target": target, **figures_of(said), "seconds": seconds, "failures": failures}


def _played(command: Sequence[str], limit_s: int) -> tuple[int, str]:
    """How it ended, and what it said; one that does not end has failed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as late:
        said = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else late.stderr or ""
        return 1, f"{said}\nit does not end within {limit_s} s"
    return done.returncode, done.stderr


def figures_of(said: str) -> dict[str, int]:
    """From libFuzzer's last lines; what a run that failed did not say is 0."""
    found = DONE.search(said)
    numbers = [int(one) for one in found.groups()] if found else [0, 0, 0, 0]
    names = ("inputs", "coverage_edges", "features", "corpus_inputs")
    peak = re.search(r"^stat::peak_rss_mb:\s+(\d+)", said, re.MULTILINE)
    return {**dict(zip(names, numbers, strict=True)), "memory_mb_max": int(peak[1]) if peak else 0}


def record(version: str, seconds: int, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Leaves the evidence; whether nothing failed."""
    figures: dict[str, Any] = {
        "inputs": sum(row["inputs"] for row in rows),
        "failures": sum(row["failures"] for row in rows),
        "sanitizer": "address",
        "compiler": version,
        "input_bytes_max": INPUT_BYTES_MAX,
        "allocation_mb_max": ALLOCATION_MB_MAX,
        "targets": list(rows),
    }
    passed = not figures["failures"]
    command = f"python -m tests.fuzz.native --seconds {seconds}"
    evidence.write("fuzz-native", command=command, passed=passed, figures=figures)
    return passed


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@click.command()
@click.option("--seconds", type=click.IntRange(min=1), default=600, show_default=True, help="Of each target.")
@click.option("--target", "name", type=click.Choice(TARGETS), help="This target only; leaves no evidence.")
def main(seconds: int, name: str | None) -> None:
    """Fuzz the native module's decoders with AddressSanitizer."""
    try:
        version, host = toolchain()
    except Missing as missing:
        raise click.ClickException(str(missing)) from None
    try:
        folder = build(host)
    except subprocess.CalledProcessError:
        raise click.ClickException(
            "the targets of native/fuzz do not compile: cargo says above why"
        ) from None
    rows = []
    for target in [name] if name else TARGETS:
        rows.append(fuzz(target, folder / target, seconds))
        click.echo("  ".join(f"{key} {value}" for key, value in rows[-1].items()))
    passed = record(version, seconds, rows) if name is None else not rows[0]["failures"]
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
