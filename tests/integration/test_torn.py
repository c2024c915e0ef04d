"""A metadata table that contradicts the timeline: what would make one, what finds it, and the way on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lockstep.verify import SourceLog, verify_table
from table.errors import Contradiction
from table.hudi.driver.guard import Guard, guarded
from table.hudi.reader.torn import Torn
from table.hudi.upkeep.cleaning import Cleaning
from tests.integration.test_hudi_table import PIPELINE, PLAIN, Driver, accept
from tests.integration.test_services import driver, keys, rows, run

__all__ = ["driver"]
pytestmark = pytest.mark.integration

WAIT_S = 60.0
GIVEN_UP_S = 600.0


@pytest.fixture
def made(driver: Callable[..., Driver]) -> Driver:
    """With a metadata table, as by default."""
    made = driver(properties={})
    for number in range(2):
        run(made, number)
    return made


def in_metadata(path: Path, instant: str) -> list[Path]:
    return list(path.glob(f".hoodie/metadata/.hoodie/timeline/{instant}*"))


def test_our_cleaning_rolls_nothing_back_that_a_commit_completes_meanwhile(
    spark: SparkSession, made: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a suspension: the open instant looks given up, the cleaning waits for the commit's lock, and
    then goes on."""
    work, never_asked = Cleaning(made.spec), list[RuntimeError]()
    session = work.open(made.table._session_beside)
    waits, goes_on = threading.Event(), threading.Event()
    real = Guard.tryLock

    def late(self: Guard, timeout: int, unit: Any) -> bool:
        waits.set()
        goes_on.wait(WAIT_S)
        return real(self, timeout, unit)

    def clean() -> None:
        try:
            with guarded(session, lambda: None):
                work.run(session, lambda _doing: None)
        except RuntimeError as error:
            never_asked.append(error)
        finally:
            waits.set()

    monkeypatch.setattr(Guard, "tryLock", late)
    instant = made.begin("t2")
    file = made.write(instant, 4, first=8)
    heartbeat = made.path / ".hoodie/.heartbeat" / instant
    long_ago = time.time() - GIVEN_UP_S
    os.utime(heartbeat, (long_ago, long_ago))
    cleaning = threading.Thread(target=clean)
    cleaning.start()
    assert waits.wait(WAIT_S)
    made.table.commit(made.planned("t2", instant, 4, file), fence=accept)
    goes_on.set()
    cleaning.join(WAIT_S)
    assert not cleaning.is_alive()
    assert rows(spark, made.path) == keys(12)
    Torn(str(made.path)).check()
    assert never_asked, "there was nothing to clean, or it took the lock for something else"
    run(made, 3)
    assert rows(spark, made.path) == keys(16)


def test_a_commit_beside_a_contradiction_is_refused_and_a_metadata_table_made_anew_is_the_way_on(
    spark: SparkSession, made: Driver, driver: Callable[..., Driver]
) -> None:
    hidden = run(made, 2)
    for file in in_metadata(made.path, hidden):
        file.unlink()
    with pytest.raises(Contradiction, match=f"instant {hidden} is complete and not in it"):
        made.run("t3", rows=4)
    report = verify_table(
        str(made.path), PIPELINE, SourceLog({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=1.0)
    )
    assert report.exact is False
    assert hidden in report.metadata_broken[0]
    for one in made.table.unfinished():
        assert made.table.roll_back(one.instant)
    made.table.close()
    spark.sql(f"create table torn using hudi location '{made.path}'")
    try:
        spark.sql("call delete_metadata_table(table => 'torn')")
    finally:
        spark.sql("drop table torn")
    again = driver(properties={})
    assert rows(spark, again.path) == keys(12)
    run(again, 3)
    run(again, 4)
    assert in_metadata(again.path, "0000"), "it is made anew"
    assert rows(spark, again.path) == keys(20)
    Torn(str(again.path)).check()


def test_a_metadata_table_is_not_made_from_what_a_worker_left_of_a_transaction_that_was_given_up(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    before = driver(properties=PLAIN)
    run(before, 0)
    instant = before.begin("given up")
    assert before.table.roll_back(instant)
    left = before.write(instant, 4, first=900)
    before.table.close()
    made = driver(properties={})
    assert not (made.path / left.path).exists()
    run(made, 1)
    assert in_metadata(made.path, "0000")
    assert rows(spark, made.path) == keys(8)
