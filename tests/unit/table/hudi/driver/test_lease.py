"""The clock by which a lease is taken, against that of the store which keeps it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from table.errors import ClockAhead, Refused, Unavailable
from table.hudi.definition import PATIENCE_S, impatient, plain_spec
from table.hudi.driver.lease import GOOD_FOR_S, LeaseClock
from table.hudi.driver.watchdog import held_s
from table.hudi.modes import LEASE_PROVIDER, LOCK_PROVIDER
from table.hudi.properties import LEASE, LEASE_S, LOCK, RENEWAL, merge, other_writers
from table.memory.store import MemoryStore
from table.port import TableSpec
from table.store.local import LocalStore
from table.store.objects.settings import ObjectSettings
from table.store.port import Stat

SPEC = TableSpec(path="s3a://lake/events", name="events", mode="upsert", ddl="id STRING", key_fields=("id",))


class Clocks:
    """This machine's, off by so much, and one that nobody sets."""

    def __init__(self, off_s: float = 0.0) -> None:
        self.off_s = off_s
        self.steady_s = 0.0

    def lease(self, folder: Path, lease_s: int = LEASE_S) -> LeaseClock:
        (folder / ".hoodie").mkdir(exist_ok=True)
        return LeaseClock(
            LocalStore(folder),
            lease_s=lease_s,
            clock_s=lambda: time.time() + self.off_s,
            steady_s=lambda: time.monotonic() + self.steady_s,
        )


@pytest.mark.parametrize(("off_s", "which"), [(15.0, "ahead of"), (-15.0, "behind")])
def test_a_clock_that_is_far_from_the_stores_takes_no_lease(tmp_path: Path, off_s: float, which: str) -> None:
    with pytest.raises(ClockAhead, match=which):
        Clocks(off_s).lease(tmp_path).check()
    Clocks(off_s).lease(tmp_path, lease_s=0).check()
    for near_s in (off_s / 2, 0.0):
        clock = Clocks(near_s).lease(tmp_path)
        clock.check()
        assert "agree" in clock.sentence()


def test_clocks_are_compared_once_a_minute_and_when_this_one_was_set(tmp_path: Path) -> None:
    clocks = Clocks()
    lease = clocks.lease(tmp_path)
    lease.check()
    dated = (tmp_path / ".hoodie" / ".lockstep_clock").stat()
    lease.check()
    assert (tmp_path / ".hoodie" / ".lockstep_clock").stat().st_ino == dated.st_ino
    clocks.off_s = 15.0
    with pytest.raises(ClockAhead):
        lease.check()
    clocks.off_s = 0.0
    lease.check()
    clocks.off_s = clocks.steady_s = GOOD_FOR_S + 1  # a minute passes, which the store's clock has not seen
    with pytest.raises(ClockAhead):
        lease.check()


def test_a_date_that_another_driver_has_made_meanwhile_makes_no_clock_agree() -> None:
    """This one stands still between what it puts and its look at it."""
    now_s = [1_000_000.0]

    class Shared(MemoryStore):
        def stat(self, path: str) -> Stat | None:
            if now_s[0] < 1_000_001.0:
                now_s[0] += 5.0
                self.put(path, b"")
                now_s[0] += 25.0
            return super().stat(path)

    store = Shared(clock_s=lambda: now_s[0])
    store.make_folder(".hoodie")
    with pytest.raises(ClockAhead, match="ahead of"):
        LeaseClock(store, lease_s=LEASE_S, clock_s=lambda: now_s[0] + 13.0, steady_s=lambda: now_s[0]).check()


def test_a_store_that_does_not_date_is_waited_for(tmp_path: Path) -> None:
    lease = Clocks().lease(tmp_path)
    (tmp_path / ".hoodie").rmdir()
    (tmp_path / ".hoodie").write_text("", encoding="utf-8")
    with pytest.raises(Unavailable, match="cannot be asked"):
        lease.check()


def test_the_lock_of_a_table_in_an_object_store_is_a_lease_which_all_writers_are_told() -> None:
    there = merge({}, {}, "upsert", path=SPEC.path)
    assert there[LOCK] == LEASE_PROVIDER
    assert int(there[LEASE]) >= 10 * int(there[RENEWAL]), "else Hudi refuses it"
    assert "hoodie.write.lock.filesystem.expire" not in there
    assert merge({}, {}, "upsert", path="/lake/events")[LOCK] == LOCK_PROVIDER
    assert other_writers(SPEC).settings[LEASE] == there[LEASE]


@pytest.mark.parametrize("root", ["s3a://lake", "gs://lake", "hdfs://nn", "file:///lake"])
def test_a_path_that_spark_takes_for_a_pattern_is_refused_wherever_it_is(root: str) -> None:
    """Everything else works with it; only nobody could read the table with Spark."""
    with pytest.raises(Refused, match=r"holds '\*', and Spark reads no Hudi table"):
        plain_spec(replace(SPEC, path=f"{root}/a*b/t"))


def test_a_path_that_hudis_lock_cannot_have_is_refused() -> None:
    assert plain_spec(SPEC).path == SPEC.path
    for strange in ("a b", "a%2Fb", 'a"b', "a[b]"):
        with pytest.raises(Refused, match="cannot have"):
            plain_spec(replace(SPEC, path=f"s3a://lake/{strange}/t"))
        assert plain_spec(replace(SPEC, path=f"file:///lake/{strange}/t")).path == f"/lake/{strange}/t"


def test_the_driver_gives_up_before_its_lock_is_over() -> None:
    assert held_s(LEASE_S) > PATIENCE_S * 2
    settings = ObjectSettings()
    spec = replace(SPEC, storage=settings)
    assert impatient(spec).storage == replace(settings, patience_s=PATIENCE_S)
    hasty = replace(spec, storage=replace(settings, patience_s=1.0))
    assert impatient(hasty) == hasty
    assert impatient(SPEC) == SPEC
