"""Threads that want the same Java class define it once: the JVM refuses a second definition."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from table.hudi.driver import compiled
from table.hudi.driver.compiled import java_class

THREADS = 8


class Jvm:
    """Knows the classes that were defined in it."""

    def __init__(self) -> None:
        self.defined: list[str] = []
        self.java = SimpleNamespace(lang=SimpleNamespace(Class=SimpleNamespace(forName=self.find)))

    def find(self, name: str, *_: Any) -> str:
        if name in self.defined:
            return name
        raise Py4JJavaError("there is no such class", SimpleNamespace(_gateway_client=None, _target_id="t"))


def test_several_threads_define_a_class_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a run's do at its start: the table's, and the one that syncs with Hive."""
    jvm, starts = Jvm(), threading.Barrier(THREADS)

    def compile_slowly(*_: Any) -> dict[str, bytes]:
        time.sleep(0.02)
        return {}

    def define(_jvm: Any, _gateway: Any, _loader: Any, name: str, _found: Any) -> str:
        jvm.defined.append(name)
        return name

    monkeypatch.setattr(compiled, "_loader", lambda *_: None)
    monkeypatch.setattr(compiled, "_class_files", compile_slowly)
    monkeypatch.setattr(compiled, "_define", define)

    def want(_: int) -> Any:
        starts.wait()
        return java_class(jvm, None, name="a.B", source="B.java", beside="c.D", misfit="no")

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(want, range(THREADS))) == ["a.B"] * THREADS
    assert jvm.defined == ["a.B"]
