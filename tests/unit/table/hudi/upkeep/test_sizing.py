"""Which small files are put together, when, and how often what was put together is written again."""

from __future__ import annotations

import random

import pytest

from table.hudi.upkeep import sizing
from table.hudi.upkeep.sizing import KEPT, SizedFile, Sizing, SmallFiles

MB = 1_000_000
WANTED = Sizing(small_below_bytes=60 * MB, target_bytes=120 * MB, files=10, after_s=120)


@pytest.fixture
def small() -> SmallFiles:
    return SmallFiles(WANTED)


def files(partition: str, *sizes: int, begin: int = 0) -> list[SizedFile]:
    return [
        SizedFile(table_partition=partition, file_id=f"{partition}-{begin + number}", size_bytes=size)
        for number, size in enumerate(sizes)
    ]


def chosen(small: SmallFiles, now_s: float) -> tuple[list[str], int] | None:
    """Table partitions, and below what size."""
    due = small.due(now_s)
    return None if due is None else (list(due.table_partitions), due.below_bytes)


def names(small: SmallFiles, now_s: float) -> list[str]:
    found = chosen(small, now_s)
    return [] if found is None else found[0]


def test_nothing_is_due_of_a_table_of_which_nothing_was_told(small: SmallFiles) -> None:
    assert small.due(1_000) is None and small.due_in_s(1_000) is None


def test_a_table_partition_is_due_when_there_are_many_small_files(small: SmallFiles) -> None:
    small.added(files("a", *[MB] * 9), 0)
    small.added(files("b", MB), 0)
    assert small.due(1) is None
    small.added(files("a", MB, begin=9), 1)
    assert chosen(small, 1) == (["a"], 60 * MB)
    assert small.due_in_s(1) == 0


def test_it_is_due_when_its_small_files_fill_one_of_the_target(small: SmallFiles) -> None:
    small.added(files("a", 59 * MB, 59 * MB), 0)
    assert small.due(0) is None
    small.added(files("a", 2 * MB, begin=2), 0)
    assert chosen(small, 0) == (["a"], 60 * MB)


def test_a_few_small_files_are_due_when_one_of_them_has_lain_for_a_while(small: SmallFiles) -> None:
    small.added(files("a", MB, MB, MB), 100)
    assert (chosen(small, 219), small.due_in_s(150)) == (None, 70)
    assert chosen(small, 220) == (["a"], 60 * MB)


def test_so_few_that_they_may_stay_are_never_due_by_their_age(small: SmallFiles) -> None:
    small.added(files("a", *[MB] * KEPT), 0)
    assert small.due(1e9) is None and small.due_in_s(1e9) is None


def test_what_a_clustering_has_made_is_none_of_many_and_does_not_become_old(small: SmallFiles) -> None:
    small.added(files("a", *[MB] * 11), None)
    assert small.due(1e9) is None
    small.added(files("a", MB, begin=11), 1_000)
    assert (chosen(small, 1_119), small.due_in_s(1_119)) == (None, 1)


def test_where_nothing_comes_any_more_what_clusterings_have_made_is_put_together_as_well(
    small: SmallFiles,
) -> None:
    small.added(files("a", 9 * MB, 3 * MB, MB), None)
    small.added(files("a", MB, begin=3), 1_000)
    small.replaced("a", ["a-3"])
    assert (chosen(small, 1_119), small.due_in_s(1_119)) == (None, 1)
    assert chosen(small, 1_120) == (["a"], 9 * MB)
    small.added(files("a", 4 * MB, 30 * MB, begin=5), None)
    assert chosen(small, 1_120) == (["a"], 60 * MB)


def test_a_file_that_is_not_small_counts_for_nothing(small: SmallFiles) -> None:
    small.added(files("a", *[60 * MB] * 20), 0)
    assert small.count == 0 and small.due(1e9) is None


def test_a_file_that_is_told_again_counts_once_and_as_it_was_told_last(small: SmallFiles) -> None:
    for _ in range(5):
        small.added(files("a", MB, MB, MB), 0)
    assert small.count == 3
    small.added(files("a", 70 * MB), 0)  # somebody has rewritten it
    assert small.count == 2


def test_what_was_replaced_is_no_more_and_the_oldest_of_the_rest_says_when(small: SmallFiles) -> None:
    small.added(files("a", MB, MB), 0)
    small.added(files("a", MB, MB, MB, begin=2), 50)
    small.replaced("a", ["a-0", "a-1", "of somebody else"])
    assert (small.count, small.due_in_s(60)) == (3, 110)
    small.replaced("a", ["a-2", "a-3", "a-4"])
    small.replaced("b", ["b-0"])
    assert (small.count, small.due_in_s(60)) == (0, None)


def test_a_table_partition_that_is_forgotten_is_not_due_any_more(small: SmallFiles) -> None:
    small.added([*files("a", *[MB] * 10), *files("b", MB)], 0)
    small.forget(["a", "c"])
    assert (small.count, small.due(1)) == (1, None)


def test_what_is_large_is_left_out_until_the_smaller_ones_have_grown_to_half_of_it(small: SmallFiles) -> None:
    small.added(files("a", 30 * MB), None)
    small.added(files("a", *[MB] * 10, begin=1), 0)
    assert chosen(small, 0) == (["a"], 30 * MB)
    small.added(files("a", 5 * MB, begin=11), 0)
    assert chosen(small, 0) == (["a"], 60 * MB)


def test_the_worst_table_partitions_come_first_as_many_as_a_round_takes(
    small: SmallFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.added([*files("a", *[MB] * 10), *files("b", *[MB] * 12), *files("c", *[MB] * 11)], 0)
    assert names(small, 0) == ["b", "c", "a"]
    monkeypatch.setattr(sizing, "ROUND_PARTITIONS_MAX", 2)
    assert names(small, 0) == ["b", "c"]


def test_a_round_takes_so_many_bytes_and_at_least_one_table_partition(
    small: SmallFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizing, "ROUND_BYTES", 0)
    small.added([*files("a", *[50 * MB] * 12), *files("b", *[50 * MB] * 11), *files("c", *[MB] * 10)], 0)
    assert names(small, 0) == ["a"]
    small.forget(["a", "b"])
    small.added(files("d", *[13 * MB] * 11), 0)
    assert names(small, 0) == ["d", "c"]


def test_a_round_says_how_large_its_small_files_are(small: SmallFiles) -> None:
    small.added([*files("a", *[MB] * 10), *files("b", *[3 * MB] * 10), *files("c", 50 * MB)], 0)
    assert (due := small.due(0)) is not None and due.mean_bytes == 2 * MB


def test_of_more_files_than_are_kept_in_mind_nothing_is_known(
    small: SmallFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizing, "TRACKED_FILES_MAX", 4)
    small.added(files("a", *[MB] * 10), 0)
    assert small.count == 4
    small.replaced("a", ["a-0"])
    small.added(files("a", *[MB] * 10, begin=20), 0)
    assert small.count == 4


@pytest.mark.parametrize("size", [MB, 50 * MB])
def test_what_was_put_together_in_vain_is_rewritten_once_and_then_waits_for_files_of_commits(
    small: SmallFiles, size: int
) -> None:
    """Each has other columns, or is too large to be two in one file."""
    small.added(files("a", size, size, size), 0)
    for number, is_copied in enumerate((True, False)):
        due = small.due(120)
        assert due is not None and due.is_copied is is_copied
        gone = [one.file_id for one in files("a", size, size, size, begin=3 * number)]
        small.clustered(files("a", size, size, size, begin=3 * number + 3), {"a": gone}, copied=is_copied)
    assert small.due(1e9) is None and small.due_in_s(1e9) is None
    small.added(files("a", MB, begin=9), 1_000)
    assert small.due_in_s(1_000) == 120
    small.added(files("b", *[MB] * 10), 1_000)
    due = small.due(1_120)
    assert due is not None and (due.table_partitions, due.is_copied) == (("b",), True)
    small.clustered(files("b", 10 * MB, begin=10), {"b": [f"b-{n}" for n in range(10)]}, copied=True)
    due = small.due(1_120)
    assert due is not None and (due.table_partitions, due.is_copied) == (("a",), False)
    small.clustered(files("a", 9 * MB, begin=10), {"a": [f"a-{n}" for n in range(6, 10)]}, copied=False)
    small.added(files("a", MB, MB, begin=11), 2_000)
    assert small.due_in_s(2_000) == 120


def test_what_is_found_by_a_look_is_put_together_at_once_whoever_has_written_it(small: SmallFiles) -> None:
    small.looked([*files("a", *[MB] * 3), *files("b", MB, MB), *files("c", 70 * MB)])
    assert chosen(small, 0) == (["a"], 60 * MB)
    small.clustered(files("a", 3 * MB, begin=3), {"a": ["a-0", "a-1", "a-2"]}, copied=True)
    assert small.due_in_s(0) is None
    small.looked([*files("a", 3 * MB, begin=3), *files("b", MB, MB)])
    assert small.due_in_s(1e9) is None, "two of a table partition may stay small"


def test_a_look_leaves_what_commits_have_said_as_it_was(small: SmallFiles) -> None:
    small.added(files("a", MB, MB), 100)
    small.looked(files("a", MB, MB))
    small.added(files("a", MB, begin=2), 150)
    assert small.due_in_s(150) == 70


def test_what_was_put_together_in_vain_is_not_taken_up_again_by_a_look(small: SmallFiles) -> None:
    small.added(files("a", *[MB] * 3), 0)
    for begin in (3, 6):
        gone = [f"a-{number}" for number in range(begin - 3, begin)]
        small.clustered(files("a", *[MB] * 3, begin=begin), {"a": gone}, copied=True)
    small.looked(files("a", *[MB] * 3, begin=6))
    assert small.due_in_s(1e9) is None


def test_what_was_rewritten_or_is_somebody_elses_is_not_copied(small: SmallFiles) -> None:
    def round_of(*partitions: str) -> bool:
        due = small.due(0)
        assert due is not None and due.table_partitions == partitions
        return due.is_copied

    small.added([*files("a", *[MB] * 12), *files("b", *[MB] * 11), *files("c", *[MB] * 10)], 0)
    small.not_copied(["a", "nobody has heard of it"])
    assert round_of("a") is False
    small.clustered(files("a", 12 * MB, begin=12), {"a": [f"a-{n}" for n in range(12)]}, copied=False)
    assert round_of("b", "c") is True
    small.clustered(files("b", 11 * MB, begin=11), {"b": [f"b-{n}" for n in range(11)]}, copied=True)
    small.added([*files("b", *[MB] * 12, begin=20), *files("a", *[MB] * 13, begin=20)], 0)
    assert round_of("a") is False
    small.clustered(files("a", 70 * MB, begin=50), {"a": ["a-12", "a-20"]}, copied=False)
    assert round_of("b", "a", "c") is True


class Lake:
    """What Hudi makes of rounds: files of the largest first, up to the target; one alone is left."""

    def __init__(self) -> None:
        self.small = SmallFiles(WANTED)
        self.sizes: dict[str, int] = {}
        self.written = self.rewritten = self.number = 0

    def commit(self, sizes: list[int], at_s: float | None) -> None:
        made = files("a", *sizes, begin=self.number)
        self.number += len(made)
        self.sizes |= {one.file_id: one.size_bytes for one in made}
        self.small.added(made, at_s)

    def work(self, now_s: float) -> None:
        while (due := self.small.due(now_s)) is not None:
            taken = sorted((s, i) for i, s in self.sizes.items() if s < due.below_bytes)
            groups: list[list[tuple[int, str]]] = []
            for size, file_id in reversed(taken):
                if not groups or sum(s for s, _ in groups[-1]) + size > WANTED.target_bytes:
                    groups.append([])
                groups[-1].append((size, file_id))
            groups = [one for one in groups if len(one) > 1]
            assert groups, "what is due can be done"
            gone = [file_id for group in groups for _, file_id in group]
            self.rewritten += sum(self.sizes.pop(file_id) for file_id in gone)
            made = files("a", *(sum(size for size, _ in group) for group in groups), begin=self.number)
            self.number += len(made)
            self.sizes |= {one.file_id: one.size_bytes for one in made}
            self.small.clustered(made, {"a": gone}, copied=True)

    def look(self) -> None:
        """What is listed of the whole table."""
        found = self.sizes.items()
        self.small.looked(SizedFile(table_partition="a", file_id=i, size_bytes=s) for i, s in found)

    def smalls(self) -> int:
        return sum(size < WANTED.small_below_bytes for size in self.sizes.values())


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_committed_few_small_files_stay_and_each_byte_is_written_again_a_few_times(
    seed: int,
) -> None:
    dice = random.Random(seed)
    lake = Lake()
    typical = dice.choice((100_000, 1 * MB, 5 * MB, 20 * MB))
    for number in range(400):
        sizes = [dice.randint(1, 2 * typical) for _ in range(dice.randint(1, 4))]
        lake.written += sum(sizes)
        lake.commit(sizes, 10.0 * number)
        lake.work(10.0 * number)
        assert lake.smalls() <= 2 * WANTED.files
    lake.work(10.0 * 399 + WANTED.after_s)
    assert lake.smalls() <= KEPT
    assert sum(lake.sizes.values()) == lake.written == sum(one for one in lake.sizes.values())
    assert lake.rewritten <= 5 * lake.written


@pytest.mark.parametrize("looks_every", [10_000, 100, 7])
@pytest.mark.parametrize("size", [1_000, 10_000, 100_000])
def test_of_a_trickle_too_each_byte_is_written_again_a_few_times(size: int, looks_every: int) -> None:
    """Its files are due by their age, long before they are many: a large one is not taken with each few, nor
    because the whole table was looked at."""
    lake = Lake()
    for number in range(5_000):
        lake.written += size
        lake.commit([size], 20.0 * number)
        if number % looks_every == looks_every - 1:
            lake.look()
        lake.work(20.0 * number)
        assert lake.smalls() <= 2 * WANTED.files
    lake.work(20.0 * 4_999 + WANTED.after_s)
    assert lake.smalls() <= KEPT and lake.rewritten <= 10 * lake.written
