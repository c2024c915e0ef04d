"""How the driver's Python and the workers start: what they import from where, and what a fork would lose."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.launch.start_up import importing, without_here, without_zips
from lockstep.launch.submit import find_spark_home

LEFT_BEHIND = """
import json, sys
from pathlib import Path
from lockstep.driver.worker_daemon import load
load()
tasks = [Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
print(json.dumps({"threads": tasks, "modules": sorted(sys.modules)}))
"""
UNUSED = "jemalloc_bg_thd"
"""pyarrow starts it with an allocator that it does not use where it has mimalloc."""


def installed(folder: Path, *, py4j: str) -> Path:
    """A pyspark as pip installs it, with its zip files; its Spark home."""
    home = folder / "pyspark"
    (home / "python" / "lib").mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "python" / "lib" / "pyspark.zip").touch()
    (home / "python" / "lib" / "py4j-0.10.9.7-src.zip").touch()
    (folder / f"py4j-{py4j}.dist-info").mkdir()
    return home


def test_a_module_in_the_folder_where_a_run_is_started_is_not_taken_for_ours() -> None:
    """`table.py` would be; the folder may be on the path for another reason, too."""
    assert without_here(["/work", "/lib", "/work"], "/work") == ["/lib", "/work"]
    assert without_here(["/lib", "/work"], "/work") == ["/lib", "/work"]
    assert without_here([], "/work") == []


def zips(home: Path) -> list[str]:
    return [str(home / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.10.9.7-src.zip")]


def test_what_is_installed_is_not_taken_from_sparks_zip_files(tmp_path: Path) -> None:
    home = installed(tmp_path, py4j="0.10.9.7")
    path = [*zips(home), "/elsewhere.zip", str(tmp_path)]

    assert without_zips(path, str(home)) == ["/elsewhere.zip", str(tmp_path)]


def test_a_py4j_of_another_version_does_not_take_the_place_of_sparks(tmp_path: Path) -> None:
    home = installed(tmp_path, py4j="0.10.9.9")

    assert without_zips([*zips(home), str(tmp_path)], str(home)) == [zips(home)[1], str(tmp_path)]


def test_a_spark_that_is_no_installed_pyspark_keeps_its_zip_files(tmp_path: Path) -> None:
    home = installed(tmp_path, py4j="0.10.9.7")
    path = [*zips(home), str(tmp_path)]

    assert without_zips(path, "") == path
    assert without_zips(path, "/opt/spark") == path
    assert without_zips(zips(home), str(home)) == zips(home)  # it is not on the path


def test_the_pyspark_that_lockstep_starts_is_taken_as_it_is_installed() -> None:
    home = find_spark_home()
    source = str(home / "python" / "lib" / "pyspark.zip")

    assert Path(source).is_file()
    assert without_zips([source, *sys.path], str(home)) == sys.path


def test_garbage_is_collected_again_after_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with pytest.raises(ImportError), importing():
        collected_inside = gc.isenabled()
        raise ImportError
    gc.unfreeze()

    assert not collected_inside
    assert gc.isenabled()


def test_workers_are_forked_from_a_process_that_has_their_modules_and_no_thread_beside_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, check=True)
    left = json.loads(done.stdout)

    assert {"participant.worker.worker", "participant.worker.task", "pyspark.daemon"} <= {*left["modules"]}
    assert len([thread for thread in left["threads"] if thread != UNUSED]) == 1


def test_the_allocator_whose_thread_a_fork_loses_is_not_the_one_in_use() -> None:
    import pyarrow as pa

    assert pa.default_memory_pool().backend_name == "mimalloc"
