"""Explore the model of the protocol in docs/spec exhaustively, with spin. Run by `make spec`.

The model as it is must have no error, and none of its lines may be dead; each bug that can be compiled into
it must be found. Nothing counts where a search did not reach its end. How to read what this prints:
docs/spec/README.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import evidence  # noqa: E402
from tools.spec_worlds import BUGS, WHAT_IFS, WORLDS, World  # noqa: E402

MODEL = ROOT / "docs" / "spec"
BUILD = ROOT / "build" / "spec"
PROPERTIES = ("S1", "S2", "S4", "S5", "S6", "S7", "S8", "S11", "O1", "O2", "O3")
MEMORY_MB_MAX = 7_500
DEPTH_MAX = 20_000
SEARCH_S_MAX = 1_800
PACKAGE_S_MAX = 120
CUT_SHORT = ("max search depth too small", "out of memory", "Search not completed", "hashtable full")
STATEMENT = re.compile(r"// STATE \d+ - \S+:(\d+) - \[(.*)\] \(\d+:\d+:\d+ - \d+\)")
UNREACHED = re.compile(r"^\t\S+:(\d+), state \d+, \"(.*)\"$", re.MULTILINE)


class NotToBeHad(Exception):
    """A tool that is missing and cannot be got; the sentence says what to install."""


@dataclass(slots=True, kw_only=True)
class Found:
    """What one search found. `violated`: the properties, in the order of the trail; `trail`: its steps."""

    world: World
    states: int = 0
    depth: int = 0
    memory_mb: float = 0.0
    duration_s: float = 0.0
    violated: tuple[str, ...] = ()
    trail: list[str] = field(default_factory=list)
    problem: str = ""
    dead: list[str] = field(default_factory=list)

    @property
    def as_expected(self) -> bool:
        return not self.problem and not self.dead and bool(self.violated) == self.world.has_error


# --- the tools --------------------------------------------------------------------------------------


def spin() -> Path:
    """The model checker: the installed one, or the Debian package's, unpacked below build/ without root.

    Raises `NotToBeHad` where neither can be.
    """
    for tool in ("gcc", "cpp"):
        if shutil.which(tool) is None:
            raise NotToBeHad(f"{tool} is not installed, and spin's searches are C programs: install gcc")
    installed = shutil.which("spin")
    if installed is not None:
        return Path(installed)
    unpacked = BUILD / "package" / "usr" / "bin" / "spin"
    if not unpacked.exists():
        _fetch(BUILD / "package")
    return unpacked


def _fetch(folder: Path) -> None:
    """Unpack the Debian package here, with lists of packages of our own where the system has none."""
    sentence = "spin is not installed and its Debian package could not be had: install spin, or go online"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NotToBeHad(sentence)
    folder.mkdir(parents=True, exist_ok=True)
    lists, cache = folder / "lists", folder / "cache"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (cache / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={cache}"]
    attempts: Sequence[Sequence[Sequence[str]]] = (
        [["apt-get", "download", "spin"]],
        [["apt-get", *own, "update"], ["apt-get", *own, "download", "spin"]],
    )
    for attempt in attempts:
        if all(_succeeds(command, folder) for command in attempt):
            break
    packages = sorted(folder.glob("spin_*.deb"))
    if not packages or not _succeeds(["dpkg-deb", "-x", str(packages[-1]), str(folder)], folder):
        raise NotToBeHad(sentence)


def _succeeds(command: Sequence[str], folder: Path) -> bool:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PACKAGE_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


# --- one search -------------------------------------------------------------------------------------


def flat() -> tuple[str, list[str]]:
    """The model as one file, and where each line comes from: spin confuses those of included files."""
    text, origins = [], []
    for number, line in enumerate(_lines(MODEL / "lockstep.pml"), 1):
        included = re.match(r'#include "(\w+\.pml)"', line)
        source = MODEL / included[1] if included else None
        for inner, one in enumerate(_lines(source) if source else [line], 1):
            text.append(one)
            origins.append(f"{source.name}:{inner}" if source else f"lockstep.pml:{number}")
    return "\n".join(text) + "\n", origins


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def search(tool: Path, world: World) -> Found:
    """Build and explore one world. The shortest way to an error where one is expected."""
    folder = BUILD / world.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text, origins = flat()
    (folder / "model.pml").write_text(text, encoding="utf-8")
    found = Found(world=world)
    defines = [f"-D{one}" for one in world.defines]
    # Inside a d_step spin does not tell what was reached; as atomic, and with no
    # statements merged (-o3), it explores the same states more slowly.
    steps = ["-o3", "-DSTEP=atomic"] if world.shows_dead_lines else []
    compiling = ["-O1", "-DBFS"] if world.has_error else ["-O2"]
    for command in (
        [str(tool), "-a", *defines, *steps, "model.pml"],
        ["gcc", "-w", "-DSAFETY", f"-DMEMLIM={MEMORY_MB_MAX}", *compiling, "-o", "pan", "pan.c"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            found.problem = f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-500:]}"
            return found
    started_s = time.monotonic()
    try:
        done = subprocess.run(
            ["./pan", f"-m{DEPTH_MAX}"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SEARCH_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        found.problem = f"not explored within {SEARCH_S_MAX} s"
        return found
    found.duration_s = time.monotonic() - started_s
    (folder / "search.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    _read(found, done.stdout)
    if not found.problem and (folder / "model.pml.trail").exists():
        _replay(tool, found, folder, defines)
    elif world.shows_dead_lines and not found.problem:
        found.dead = _dead(done.stdout, (folder / "pan.m").read_text(encoding="utf-8"), origins)
    return found


def _read(found: Found, said: str) -> None:
    """The figures of a search, and whether it came to its end."""
    states = re.search(r"^\s*([\d.e+]+) states, stored", said, re.MULTILINE)
    reached = re.search(r"depth reached (\d+), errors: (\d+)", said)
    memory = re.search(r"([\d.]+)\s+total actual memory usage", said)
    if states is None or reached is None or memory is None:
        found.problem = f"the search ended without a result: {said.strip()[-300:]}"
        return
    found.states, found.depth = int(float(states[1])), int(reached[1])
    found.memory_mb = float(memory[1])
    for sign in (
        "max search depth too small",
        "out of memory",
        "Search not completed",
        "hash-table overflow",
    ):
        # A search that has found its error is told apart by its trail; it need not go on.
        if sign.lower() in said.lower() and not int(reached[2]):
            found.problem = f"the search was cut short: {sign}"
    if int(reached[2]) and "assertion violated" not in said:
        found.problem = f"an error that is no property: {said.strip()[:300]}"


def _replay(tool: Path, found: Found, folder: Path, defines: Sequence[str]) -> None:
    done = subprocess.run(
        [str(tool), "-t", *defines, "model.pml"], cwd=folder, capture_output=True, text=True, check=False
    )
    steps = [" ".join(line.split()) for line in done.stdout.splitlines()]
    end = next((n for n, line in enumerate(steps) if line.startswith("spin: trail ends")), len(steps))
    found.trail = [line for line in steps[:end] if line and not line.startswith("spin:")]
    (folder / "trail.txt").write_text("\n".join(found.trail) + "\n", encoding="utf-8")
    said = [line.removeprefix("VIOLATED ") for line in found.trail if line.startswith("VIOLATED")]
    found.violated = tuple(dict.fromkeys(line.split(":")[0] for line in said))
    if not found.violated:
        found.problem = f"an error whose trail names no property: {folder / 'trail.txt'}"


def _dead(said: str, compiled: str, origins: Sequence[str]) -> list[str]:
    """Statements that were reached in none of their copies, but for what tells an error."""
    exists = Counter((int(number), _plain(text)) for number, text in STATEMENT.findall(compiled))
    unreached = Counter((int(number), _plain(text)) for number, text in UNREACHED.findall(said))
    tells = {number for number, text in unreached if "VIOLATED" in text}
    return [
        f"{origins[number - 1]}: {text}"
        for (number, text), count in sorted(unreached.items())
        if count >= exists[number, text]
        and text not in ("-end-", "else")  # an `else` is reported with its `if`
        and not (number in tells and text.startswith(("printf", "assert")))
    ]


def _plain(text: str) -> str:
    """A statement as all of its copies have it: without numbers and line ends, which differ."""
    return re.sub(r"\\+n|\d+", "", text)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def show(one: Found) -> None:
    expected = "an error" if one.world.has_error else "none"
    dead = f"no error, but dead lines: {'; '.join(one.dead)}" if one.dead else ""
    result = one.problem or ", ".join(one.violated) or dead or "none"
    verdict = "" if one.as_expected else "   <- NOT AS EXPECTED"
    say(
        f"{one.world.name:24} {one.states:>12,} {one.depth:>6} {one.memory_mb:>6,.0f} {one.duration_s:>6.1f}"
        f"  {expected:8}  {result}{verdict}"
    )


def keep(found: Sequence[Found], duration_s: float) -> None:
    sound = [one for one in found if not one.world.has_error]
    bugs = [one for one in found if one.world.has_error]
    evidence.write(
        "spec",
        command="make spec",
        passed=all(one.as_expected for one in found),
        figures={
            "properties": ", ".join(PROPERTIES),
            "worlds_explored_completely": sum(not one.problem for one in sound),
            "states_explored": sum(one.states for one in sound),
            "errors_in_the_model_as_it_is": sum(bool(one.violated) for one in sound),
            "seeded_bugs": len(bugs),
            "seeded_bugs_found": sum(bool(one.violated) for one in bugs),
            "duration_s": round(duration_s, 1),
            "worlds": [
                {
                    "world": one.world.name,
                    "what": one.world.says,
                    "states": one.states,
                    "depth_steps": one.depth,
                    "memory_mb": round(one.memory_mb),
                    "duration_s": round(one.duration_s, 1),
                }
                for one in sound
            ],
            "bugs": [
                {
                    "bug": one.world.name,
                    "what": one.world.says,
                    "violated": ", ".join(one.violated),
                    "trail_steps": len(one.trail),
                    "states": one.states,
                }
                for one in bugs
            ],
        },
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="worlds or bugs to explore; by default all but the what-ifs")
    parser.add_argument("--trail", action="store_true", help="print the way to each error")
    options = parser.parse_args()
    usual = [one.name for one in (*WORLDS, *BUGS)]
    every = {one.name: one for one in (*WORLDS, *BUGS, *WHAT_IFS)}
    if unknown := [name for name in options.names if name not in every]:
        parser.error(f"no such world: {', '.join(unknown)}; there are {', '.join(every)}")
    try:
        tool = spin()
    except NotToBeHad as error:
        sys.stderr.write(f"{error}.\n")
        return 2
    os.nice(5)
    started_s = time.monotonic()
    found = []
    say(f"{'':24} {'states':>12} {'depth':>6} {'MB':>6} {'s':>6}  expected  found")
    for name in options.names or usual:
        one = search(tool, every[name])
        found.append(one)
        show(one)
        if one.trail and (options.trail or not one.world.has_error):
            say("\n".join(f"    {line}" for line in one.trail))
    if not options.names:
        keep(found, time.monotonic() - started_s)
    wrong = [one.world.name for one in found if not one.as_expected]
    say(f"not as expected: {', '.join(wrong)}" if wrong else "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
