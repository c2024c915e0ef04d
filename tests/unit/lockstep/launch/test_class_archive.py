"""Which archive of classes a driver's JVM is started from."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from lockstep.cli import run
from lockstep.errors import EXIT_FAILED
from lockstep.launch.class_archive import ClassArchive, options_to_make, options_to_use
from lockstep.launch.jars import find_java
from lockstep.launch.submit import find_jars, find_spark_home
from table.hudi.needs import PACKAGES


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, str]:
    """Hudi's jars in an Ivy folder of their own."""
    folder = tmp_path / "ivy" / "jars"
    folder.mkdir(parents=True)
    for group, artifact, version in (package.split(":") for package in PACKAGES):
        with zipfile.ZipFile(folder / f"{group}_{artifact}-{version}.jar", "w") as jar:
            jar.writestr("A.class", b"")
    return {"spark.jars.ivy": str(tmp_path / "ivy")}


def archive_for(conf: dict[str, str]) -> ClassArchive:
    return ClassArchive(find_java(), find_jars(PACKAGES, conf), find_spark_home())


def make(archive: ClassArchive, content: bytes = b"classes") -> Path:
    archive.folder.mkdir(parents=True, exist_ok=True)
    made = archive.folder / "made.jsa"
    made.write_bytes(content)
    return archive.keep(made)


def test_a_driver_starts_from_the_archive_that_was_made_for_it(conf: dict[str, str]) -> None:
    assert options_to_use(find_jars(PACKAGES, conf), conf) == ""
    made = make(archive_for(conf))
    assert archive_for(conf).find() == made
    assert options_to_use(find_jars(PACKAGES, conf), conf).startswith(f'"-XX:SharedArchiveFile={made}" ')


def test_other_jars_want_another_archive_and_the_old_one_is_named(conf: dict[str, str]) -> None:
    before = make(archive_for(conf))
    os.utime(find_jars(PACKAGES, conf)[0], (1, 1))
    changed = archive_for(conf)
    assert changed.find() is None and options_to_use(find_jars(PACKAGES, conf), conf) == ""
    after = make(changed)
    assert changed.others(after) == [before]


def test_an_archive_that_was_cut_off_is_not_used(conf: dict[str, str]) -> None:
    made = make(archive_for(conf))
    made.write_bytes(b"cla")
    assert archive_for(conf).find() is None and options_to_use(find_jars(PACKAGES, conf), conf) == ""


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=/mine.jsa", "-Xshare:off"])
def test_whoever_names_an_archive_gets_that_one(conf: dict[str, str], option: str) -> None:
    make(archive_for(conf))
    assert options_to_use(find_jars(PACKAGES, conf), {**conf, "spark.driver.extraJavaOptions": option}) == ""


def test_a_jvm_is_told_in_one_word_where_to_write_whatever_the_folder_is_called(tmp_path: Path) -> None:
    assert options_to_make(tmp_path / "a b.jsa").startswith(f'"-XX:ArchiveClassesAtExit={tmp_path}/a b.jsa" ')


def test_who_prepares_without_a_java_is_told_so(
    conf: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(conf["spark.jars.ivy"]).rename(tmp_path / ".ivy2")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert run(["prepare"]) == EXIT_FAILED
    said = capsys.readouterr().err
    assert "which has no bin/java: install it" in said and "unexpected" not in said


def test_a_command_can_be_composed_where_there_is_no_java(
    conf: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(archive_for(conf))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert options_to_use(find_jars(PACKAGES, conf), conf) == ""
