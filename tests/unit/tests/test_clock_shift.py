"""The clocks that faults set apart: what processes are told of the age of files, in Python and in Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.clock import ENTRY, HEADER, Clock, make_clock

HOUR_S = 3_600.0
NEAR_S = 120.0
"""A loaded machine takes its time to start a JVM."""

PYTHON = """
import json, os, sys, time
def ages(path):
    file, folder = os.open(path, os.O_RDONLY), os.open(os.path.dirname(path), os.O_RDONLY)
    found = os.stat(path), os.lstat(path), os.fstat(file), os.stat(os.path.basename(path), dir_fd=folder)
    return [time.time() - at for one in found for at in (one.st_mtime, one.st_ctime)]
old, *paths = sys.argv[1:]
set_to = time.time() - 500_000
os.utime(old, (set_to, set_to))
file = os.open(old + ".file", os.O_RDWR | os.O_CREAT)
os.utime(file, (set_to, set_to))
said = {path: ages(path) for path in paths}
said["set"] = [time.time() - os.stat(old).st_mtime, time.time() - os.fstat(file).st_mtime]
os.utime(old)
said["now"] = [time.time() - os.stat(old).st_mtime]
print(json.dumps(said))
"""

JAVA = """
import java.io.File;
import java.nio.file.*;
import java.nio.file.attribute.*;
public class Ages {
    static double age(long ms) { return (System.currentTimeMillis() - ms) / 1000.0; }
    static double nio(String path, String name) throws Exception {
        return age(((FileTime) Files.getAttribute(Path.of(path), name)).toMillis());
    }
    public static void main(String[] paths) throws Exception {
        StringBuilder said = new StringBuilder("{");
        for (int i = 1; i < paths.length; i++) {
            Path path = Path.of(paths[i]);
            double[] ages = {
                age(new File(paths[i]).lastModified()),
                age(Files.getLastModifiedTime(path).toMillis()),
                age(Files.getLastModifiedTime(path, LinkOption.NOFOLLOW_LINKS).toMillis()),
                nio(paths[i], "unix:ctime")};
            said.append("\\"" + paths[i] + "\\": " + java.util.Arrays.toString(ages) + ", ");
        }
        long setTo = System.currentTimeMillis() - 500_000_000L;
        new File(paths[0]).setLastModified(setTo);
        double[] set = {age(new File(paths[0]).lastModified()), 0.0};
        Files.setLastModifiedTime(Path.of(paths[0]), FileTime.fromMillis(setTo));
        set[1] = age(Files.getLastModifiedTime(Path.of(paths[0])).toMillis());
        said.append("\\"set\\": " + java.util.Arrays.toString(set) + ", ");
        Files.writeString(Path.of(paths[0]), "written");
        double[] now = {age(Files.getLastModifiedTime(Path.of(paths[0])).toMillis())};
        System.out.println(said + "\\"now\\": " + java.util.Arrays.toString(now) + "}");
    }
}
"""

Ask = Callable[[Clock, "list[Path]"], "dict[str, list[float]]"]


@pytest.fixture(params=["python", "java"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """How old a process with that clock takes files to be, seconds, by each way to ask.

    And the first of them, which it has `set` to be 500,000 s old, and left to the system `now`.
    """
    source = tmp_path / "Ages.java"
    source.write_text(JAVA)
    commands = {"python": [sys.executable, "-c", PYTHON], "java": ["java", "-Xshare:auto", str(source)]}

    def asked(clock: Clock, paths: list[Path]) -> dict[str, list[float]]:
        told = subprocess.run(
            [*commands[request.param], *map(str, paths)],
            env={**os.environ, **clock.environment()},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout
        said: dict[str, list[float]] = json.loads(told)
        return said

    return asked


def written(path: Path) -> Path:
    path.write_text("written")
    return path


def all_near(ages_s: list[float], expected_s: float) -> bool:
    return all(-1 < age_s - expected_s < NEAR_S for age_s in ages_s)


def test_a_file_is_as_old_as_the_clock_says_that_was_in_force_when_it_was_written(
    ask: Ask, tmp_path: Path
) -> None:
    before = written(tmp_path / "before")
    clock = make_clock(tmp_path / "of.clock")
    files = {before: 2 * HOUR_S, written(tmp_path / "right"): 2 * HOUR_S}
    clock.off_by(HOUR_S)
    files[written(tmp_path / "forth")] = HOUR_S
    clock.off_by(-HOUR_S)
    files[written(tmp_path / "back")] = 3 * HOUR_S
    clock.off_by(2 * HOUR_S)
    files[written(tmp_path / "now")] = 0
    said = ask(clock, [written(tmp_path / "to_set"), *files])
    for path, expected_s in files.items():
        assert all_near(said[str(path)], expected_s), path
    assert all_near(said["set"], 500_000) and all_near(said["now"], 0)


def test_what_is_written_before_a_step_is_dated_before_it_and_what_is_written_after_it_after(
    tmp_path: Path,
) -> None:
    clock = make_clock(tmp_path / "of.clock")
    for number in range(1, 200):
        before = written(tmp_path / f"{number % 10}").stat().st_mtime_ns
        clock.off_by(HOUR_S)
        after = written(tmp_path / f"{number % 7}").stat().st_mtime_ns
        step_ns, _ = ENTRY.unpack_from(clock.file.read_bytes(), HEADER.size + number * ENTRY.size)
        assert before < step_ns <= after, f"step {number}"


def test_the_files_of_a_server_are_dated_by_its_clock_and_not_by_the_one_that_is_off(
    ask: Ask, tmp_path: Path
) -> None:
    clock = make_clock(tmp_path / "of.clock", seconds=HOUR_S, files_apart=True)
    file = written(tmp_path / "file")
    said = ask(clock, [written(tmp_path / "to_set"), file])
    assert (
        all_near(said[str(file)], HOUR_S) and all_near(said["set"], 500_000) and all_near(said["now"], HOUR_S)
    )
