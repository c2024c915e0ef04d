"""Every reader finds the homes of a table partition by itself, and they are spread."""

from __future__ import annotations

from collections import Counter

import pytest

from participant.exchange import homes as module
from participant.exchange.homes import Homes

WRITERS = [f"{number:032x}" for number in range(10)]
FOLDERS = [f"day=2026-11-{number}" for number in range(1_000)]


def home_of(folder: str, me: str, count: int = 1, writers: list[str] = WRITERS) -> str:
    homes = Homes(writers, me, count)
    return homes.writers[homes(folder)]


def test_with_one_home_all_readers_name_the_same() -> None:
    for folder in FOLDERS[:50]:
        assert len({home_of(folder, me) for me in WRITERS}) == 1


def test_with_three_homes_a_table_partition_has_three_writers_and_each_reader_always_the_same_one() -> None:
    for folder in FOLDERS[:50]:
        found = {me: home_of(folder, me, 3) for me in WRITERS}
        assert len(set(found.values())) == 3
        assert found == {me: home_of(folder, me, 3) for me in WRITERS}


def test_whoever_is_a_home_itself_hands_nothing_over() -> None:
    for folder in FOLDERS[:50]:
        homes = {home_of(folder, me, 3) for me in WRITERS}
        assert all(home_of(folder, me, 3) == me for me in homes)


def test_table_partitions_are_spread_over_all_writers() -> None:
    homes = Homes(WRITERS, WRITERS[0], 1)
    counts = Counter(map(homes, FOLDERS))
    assert len(counts) == len(WRITERS) and max(counts.values()) < 2 * len(FOLDERS) / len(WRITERS)


def test_where_a_writer_goes_only_what_it_wrote_has_another_home() -> None:
    left = WRITERS[:-1]
    for folder in FOLDERS[:200]:
        before = home_of(folder, WRITERS[0])
        if before != WRITERS[-1]:
            assert home_of(folder, WRITERS[0], writers=left) == before


def test_more_homes_than_writers_are_all_writers() -> None:
    assert {home_of("day=1", me, 1_000) for me in WRITERS} == set(WRITERS)


def test_homes_are_the_same_when_they_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_MAX", 3)
    homes = Homes(WRITERS, WRITERS[0], 2)
    first = [homes(folder) for folder in FOLDERS[:20]]
    assert [homes(folder) for folder in FOLDERS[:20]] == first


def test_a_folder_that_is_no_text_of_utf_8_has_a_home() -> None:
    assert home_of("day=\udcff", WRITERS[0]) in WRITERS
