"""Finding Java, and the broker's jars in their cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from control_topic.cache_folder import default_cache
from lockstep.launch import jars
from lockstep.launch.jars import (
    KAFKA,
    KAFKA_VERSION,
    METASTORE,
    Bundle,
    JarsError,
    classified,
    find_java,
    resolve,
)


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def java_that_says(home: Path, version: str) -> Path:
    return script(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-01-01' >&2")


@pytest.mark.parametrize("version", ["17.0.15", "21", "22-ea", "17.0.1+12"])
def test_a_java_that_is_new_enough_is_taken(tmp_path, monkeypatch, version) -> None:
    java = java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


@pytest.mark.parametrize(("version", "major"), [("1.8.0_412", "8"), ("11.0.2", "11"), ("16-ea", "16")])
def test_a_java_that_is_too_old_is_refused_with_what_to_do(tmp_path, monkeypatch, version, major) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JarsError, match=f"is Java {major} and Java 17 or newer is needed.*JAVA_HOME"):
        find_java()


@pytest.mark.parametrize(("version", "major"), [("23.0.1", "23"), ("24", "24"), ("25-ea", "25")])
def test_a_java_that_sparks_hadoop_does_not_run_on_is_refused_with_what_to_do(
    tmp_path, monkeypatch, version, major
) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JarsError, match=f"is Java {major}, and Spark 3.5 runs on Java 17 to 22.*JAVA_HOME"):
        find_java()


def test_java_home_without_java_is_refused_although_the_path_has_one(tmp_path, monkeypatch) -> None:
    java_that_says(tmp_path / "good", "17.0.1")
    monkeypatch.setenv("PATH", str(tmp_path / "good" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "empty"))
    with pytest.raises(JarsError, match=r"which has no bin/java"):
        find_java()


def test_a_missing_java_is_refused_with_what_to_do(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JarsError, match=r"no java on the PATH: install it"):
        find_java()


@pytest.mark.parametrize("line", ["exit 1", "echo hello"])
def test_a_java_that_does_not_say_its_version_is_refused(tmp_path, monkeypatch, line) -> None:
    script(tmp_path / "bin" / "java", line)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JarsError, match="JAVA_HOME"):
        find_java()


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("LOCKSTEP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "lockstep"
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"


def test_jars_that_are_there_need_neither_java_nor_network(tmp_path, monkeypatch) -> None:
    folder = tmp_path / f"kafka-{KAFKA_VERSION}"
    folder.mkdir()
    (folder / "b.jar").touch()
    (folder / "a.jar").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert resolve(KAFKA, tmp_path) == [folder / "a.jar", folder / "b.jar"]


def fake_ivy(home: Path, retrieve: str) -> None:
    """A java that answers -version, and otherwise does `retrieve`, where $folder is the pattern's folder."""
    script(
        home / "bin" / "java",
        """if [ "$1" = -version ]; then echo 'openjdk version "17"' >&2; exit 0; fi""",
        'for last; do :; done; folder=$(dirname "$last")',
        retrieve,
    )


def test_jars_are_retrieved_once(tmp_path, monkeypatch) -> None:
    fake_ivy(tmp_path, 'echo x >> "$COUNT"; mkdir -p "$folder"; touch "$folder/kafka.jar"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    cache = tmp_path / "cache"
    for _ in range(2):
        assert resolve(KAFKA, cache) == [cache / f"kafka-{KAFKA_VERSION}" / "kafka.jar"]
    assert (tmp_path / "count").read_text() == "x\n"
    assert sorted(p.name for p in cache.iterdir()) == [
        f"kafka-{KAFKA_VERSION}",
        f"kafka-{KAFKA_VERSION}.lock",
    ]


def test_a_download_that_failed_says_what_to_do_and_leaves_nothing_that_looks_whole(
    tmp_path, monkeypatch
) -> None:
    fake_ivy(tmp_path, 'mkdir -p "$folder"; touch "$folder/half.jar"; echo UNRESOLVED; exit 1')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    cache = tmp_path / "cache"
    with pytest.raises(JarsError, match=r"Ivy ended with 1 .* check the network") as raised:
        resolve(KAFKA, cache)
    log = cache / f"kafka-{KAFKA_VERSION}.resolve.log"
    assert str(log) in str(raised.value)
    assert log.read_text() == "UNRESOLVED\n"
    assert not (cache / f"kafka-{KAFKA_VERSION}").exists()


def test_a_download_that_does_not_end_is_ended(tmp_path, monkeypatch) -> None:
    fake_ivy(tmp_path, "exec sleep 60")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "RESOLVE_TIMEOUT_S", 0.5)
    with pytest.raises(JarsError, match=r"did not end in 0\.5 s"):
        resolve(KAFKA, tmp_path / "cache")


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JarsError, match="set LOCKSTEP_CACHE"):
        resolve(KAFKA, tmp_path / "file" / "cache")


def test_a_folder_without_jars_is_named(tmp_path) -> None:
    os.mkdir(tmp_path / f"kafka-{KAFKA_VERSION}")
    with pytest.raises(JarsError, match=r"holds no jars: remove it"):
        resolve(KAFKA, tmp_path)


def test_what_a_bundle_needs_comes_with_it_unless_it_is_elsewhere() -> None:
    assert "transitive" not in KAFKA.ivy_module()
    assert METASTORE.ivy_module().count('transitive="false"') == len(METASTORE.packages)


def test_a_jar_with_a_classifier_is_asked_for_alone_and_found_in_a_folder_of_its_own(tmp_path) -> None:
    asked = Bundle(title="one", name="one", packages=("g:a:1:shaded",)).ivy_module()
    assert 'transitive="false"' in asked and 'm:classifier="shaded"' in asked
    assert "classifier" not in KAFKA.ivy_module()
    jar = tmp_path / "a-1-shaded" / "a-1-shaded.jar"
    jar.parent.mkdir()
    jar.touch()
    assert classified(["g:a:1:shaded"], tmp_path) == [jar]
