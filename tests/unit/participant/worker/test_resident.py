"""What a worker says of its process's memory."""

from __future__ import annotations

import pytest

from participant.worker import resident

MEMINFO = "MemTotal:       16000000 kB\nMemFree:          100 kB\n"


def limited(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> int:
    monkeypatch.setattr(resident, "_read", lambda path: files.get(path, ""))
    resident.memory_max_bytes.cache_clear()
    try:
        return resident.memory_max_bytes()
    finally:
        resident.memory_max_bytes.cache_clear()


def test_this_process_has_memory_and_may_have_more() -> None:
    assert 1_000_000 < resident.resident_bytes() < resident.memory_max_bytes()


def test_the_smallest_limit_of_the_groups_above_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "0::/pod/container\n",
        "/sys/fs/cgroup/memory.max": "max\n",
        "/sys/fs/cgroup/pod/memory.max": "2000000000\n",
        "/sys/fs/cgroup/pod/container/memory.max": "max\n",
    }
    assert limited(monkeypatch, files) == 2_000_000_000


def test_a_group_of_the_first_version_counts_and_its_unlimited_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "9:cpu,memory:/a\n4:pids:/a\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000000000\n",
    }
    assert limited(monkeypatch, files) == 1_000_000_000
    del files["/sys/fs/cgroup/memory/a/memory.limit_in_bytes"]
    assert limited(monkeypatch, files) == 16_000_000 * 1_024


def test_where_nothing_can_be_read_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limited(monkeypatch, {}) == 0
    assert limited(monkeypatch, {"/proc/self/cgroup": "damaged\n::\n"}) == 0
