"""Table partitions age by the newest value of a field in their rows, on real Hudi."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from table.errors import Unavailable
from table.hudi.driver.session import Session
from table.hudi.upkeep.due import Done
from table.hudi.upkeep.retention import Retention, request, take_out, tidy
from tests.integration.test_hudi_table import PIPELINE, PLAIN
from tests.integration.test_retention import WITH_METADATA, Days, days_of, keys, session_of
from tests.integration.test_services import rows, rows_without_jvm

pytestmark = pytest.mark.integration

FIELD = "_kafka_timestamp"
NOW = datetime(2026, 11, 20, tzinfo=UTC)
OLD, YOUNG = datetime(2026, 8, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)


class Moments(Days):
    """Its rows hold a moment."""

    moment = OLD

    def rows(self, instant: str, name: str, rows: int, first: int) -> pa.Table:  # type: ignore[override]
        made = super().rows(instant, name, rows, first)
        at = made.schema.get_field_index(FIELD)
        return made.set_column(
            at, made.schema.field(at), pa.array([self.moment] * rows, made.schema.field(at).type)
        )

    def add(self, number: int, region: str, moment: datetime) -> None:
        """A transaction of four rows."""
        self.day, self.moment = region, moment
        self.run(f"t{number}", rows=4)


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Moments]]:
    made: list[Moments] = []

    def make(**changes: object) -> Moments:
        changes = {"retention_ms": 90 * 86_400_000, "retention_field": FIELD, **changes}
        made.append(Moments(spark, tmp_path / "t", **changes))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def looker(made: Moments) -> Retention:
    return Retention(made.spec, PIPELINE, wall_s=NOW.timestamp)


def look(made: Moments, session: Session | None = None) -> Done | None:
    return looker(made).run(session or session_of(made), lambda _doing: None)


@pytest.mark.parametrize("properties", [PLAIN, WITH_METADATA])
def test_a_table_partition_goes_once_the_newest_value_in_all_of_its_files_is_older(
    spark: SparkSession, driver: Callable[..., Moments], properties: dict[str, str]
) -> None:
    made = driver(properties=properties)
    for number, (region, moment) in enumerate(
        [
            *(("gone", OLD), ("mixed", OLD), ("gone", OLD), ("mixed", YOUNG), ("mixed", OLD)),
            ("2020-01-01", YOUNG),
        ]
    ):
        made.add(number, region, moment)
    before = days_of(made.path)
    done = look(made)
    assert done is not None and done.what == "1 table partitions taken out, of 2 file groups"
    assert days_of(made.path) == before, "who has begun to read goes on"
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3, 4, 5)
    assert look(made) is None
    made.add(6, "gone", YOUNG)
    assert look(made) is None
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3, 4, 5, 6)


@pytest.mark.parametrize("moment", [YOUNG, OLD])
def test_a_file_that_comes_between_the_look_and_the_lock_keeps_its_table_partition_until_it_is_looked_anew(
    spark: SparkSession, driver: Callable[..., Moments], moment: datetime
) -> None:
    made = driver()
    made.add(0, "gone", OLD)
    session = session_of(made)
    work = looker(made)
    session.reload()
    past = work._past_their_time(session)
    assert list(past) == ["gone"]
    instant = request(session, PIPELINE)
    made.add(1, "gone", moment)
    with pytest.raises(Unavailable, match="files of table partition 'gone' came or went meanwhile"):
        take_out(session, PIPELINE, instant, past)
    assert tidy(session, PIPELINE).taken == [instant]
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(0, 1)
    done = work.run(session, lambda _doing: None)
    assert (done is not None) == (moment is OLD)
    assert rows(spark, made.path) == (keys(0, 1) if moment is YOUNG else [])


def test_a_file_that_is_committed_after_the_groups_were_told_is_not_lost_with_them(
    spark: SparkSession, driver: Callable[..., Moments], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what the instant names and the check under the table lock."""
    made = driver()
    made.add(0, "gone", OLD)
    session = session_of(made)
    past = looker(made)._past_their_time(session)
    instant, use_schema = request(session, PIPELINE), session.use_schema

    def meanwhile(schema: str) -> None:
        made.add(1, "gone", YOUNG)
        use_schema(schema)

    monkeypatch.setattr(session, "use_schema", meanwhile)
    with pytest.raises(Unavailable, match="came or went meanwhile"):
        take_out(session, PIPELINE, instant, past)
    assert tidy(session, PIPELINE).taken == [instant]
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(0, 1)
    assert look(made, session) is None
