"""Who owns which source partition: the two ways round always agree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from coordinator.owners import Owners

PARTITIONS = [SourcePartition("events", number) for number in range(5)]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(("assign", "release", "remove")),
        st.sampled_from(("a", "b", "c")),
        st.lists(st.sampled_from(PARTITIONS), unique=True),
    ),
    max_size=12,
)


@given(CHANGES)
def test_it_is_a_dictionary_that_is_written_anew_at_every_change(
    changes: list[tuple[str, str, list[SourcePartition]]],
) -> None:
    owners, plain = Owners(), dict[SourcePartition, str]()
    for change, who, partitions in changes:
        before = set(plain)
        kept = {p: owner for p, owner in plain.items() if owner != who}
        if change == "assign":
            plain = {**kept, **dict.fromkeys(partitions, who)}
            vacated = owners.assign(who, partitions)
        elif change == "release":
            plain = {p: owner for p, owner in plain.items() if owner != who or p not in partitions}
            vacated = owners.release(who, partitions)
        else:
            plain = kept
            vacated = owners.remove(who)
        assert vacated == bool(before - plain.keys())
        assert owners == plain
        assert owners.incarnations() == set(plain.values())
        for some in (frozenset(partitions), frozenset(PARTITIONS), frozenset(plain)):
            assert owners.cover(some) == (some <= plain.keys())
