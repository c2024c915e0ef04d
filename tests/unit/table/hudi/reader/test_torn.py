"""When a metadata table contradicts the timeline of its table, by the names of instants alone."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pytest

from table.errors import Contradiction
from table.hudi.reader.torn import Disagreement, Torn, compare, why


def at(second: int) -> str:
    return f"202611230800{second:02}000"


def done(second: int, action: str = "commit", *, completed: int | None = None) -> str:
    return f"{at(second)}_{at(second if completed is None else completed)[:-1]}5.{action}"


def made(second: int, *, completed: int | None = None) -> str:
    """As the metadata table has a write."""
    return done(second, "deltacommit", completed=completed)


MAKING = f"00000000000000010_{at(1)[:-1]}1.deltacommit"
DATA = [
    done(1),
    done(3),
    done(5, "deltacommit"),
    done(7, "replacecommit"),
    f"{at(9)}.commit.requested",
    "history",
]
METADATA = [MAKING, made(3), made(5), made(7), done(6, "commit"), f"{at(9)}.deltacommit.requested"]


def test_two_timelines_that_agree() -> None:
    assert compare(DATA, METADATA, ()) == Disagreement()


def test_without_a_metadata_table_there_is_nothing_to_contradict() -> None:
    assert compare(DATA, [], ()) == Disagreement()
    assert compare([], METADATA, ()) == Disagreement()


@pytest.mark.parametrize("second", [5, 7])
def test_what_is_complete_and_not_in_the_metadata_table_is_hidden(second: int) -> None:
    left = [name for name in METADATA if name != made(second)]
    assert compare(DATA, left, ()) == Disagreement(hidden=(at(second),))


def test_what_was_rolled_back_and_is_still_in_it_would_come_back() -> None:
    assert compare(DATA, [*METADATA, made(4)], [at(4), at(2)]) == Disagreement(back=(at(4),))


def test_what_the_metadata_table_was_made_from_is_not_named_in_it() -> None:
    """Requested before, complete before: also where an earlier one was open then, and completed after."""
    making = f"00000000000000010_{at(4)[:-1]}6.deltacommit"
    assert (
        compare([done(2, completed=5), done(3, completed=4)], [making, made(2, completed=5)], ())
        == Disagreement()
    )
    assert compare([done(3, completed=5)], [making, made(2, completed=5)], ()) == Disagreement(
        hidden=(at(3),)
    )


def test_what_the_metadata_table_has_archived_is_not_missed() -> None:
    assert compare(DATA, [made(5), made(7)], ()) == Disagreement()


def test_cleans_rollbacks_and_restores_are_none_of_it() -> None:
    others = [done(second, action) for second, action in ((4, "clean"), (6, "rollback"), (8, "restore"))]
    assert compare([*DATA, *others], METADATA, ()) == Disagreement()


def test_a_clustering_that_was_carried_out_anew_is_complete_whatever_was_rolled_back() -> None:
    assert compare(DATA, METADATA, [at(7)]) == Disagreement()
    assert compare([done(9)], [*METADATA, made(9)], [at(7)]) == Disagreement(), "archived since"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for folder, names in ((".hoodie/timeline", DATA), (".hoodie/metadata/.hoodie/timeline", METADATA)):
        (tmp_path / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / folder / name).touch()
    (tmp_path / ".hoodie/hoodie.properties").write_text("hoodie.table.version=9\n")
    return tmp_path


def rollback(table: Path, second: int, of: str) -> None:
    schema = {
        "type": "record",
        "name": "HoodieRollbackMetadata",
        "fields": [{"name": "commitsRollback", "type": {"type": "array", "items": "string"}}],
    }
    with (table / ".hoodie/timeline" / done(second, "rollback")).open("wb") as file:
        fastavro.writer(file, schema, [{"commitsRollback": [of]}])


def test_a_contradiction_names_instant_and_document(table: Path) -> None:
    torn = Torn(str(table))
    torn.check()
    (table / ".hoodie/metadata/.hoodie/timeline" / made(5)).unlink()
    with pytest.raises(Contradiction, match=f"instant {at(5)} is complete and not in it") as caught:
        torn.check()
    assert "docs/operations.md" in str(caught.value)


def test_what_a_rollback_is_of_is_read_from_it(table: Path) -> None:
    torn = Torn(str(table))
    rollback(table, 8, at(4))
    torn.check()
    (table / ".hoodie/metadata/.hoodie/timeline" / made(4)).touch()
    with pytest.raises(Contradiction, match=f"instant {at(4)} was rolled back and is still in it"):
        torn.check()


def test_many_instants_are_some_and_a_number() -> None:
    assert f"{at(1)}, {at(2)}, {at(3)} and 2 more" in why(
        "/t", Disagreement(hidden=tuple(map(at, range(1, 6))))
    )
    assert why("/t", Disagreement()) == ""
