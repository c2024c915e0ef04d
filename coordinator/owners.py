"""Who owns which source partition, as the workers say it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Set

from control_topic.messages import SourcePartition


class Owners(Mapping[SourcePartition, str]):
    """Source partition -> incarnation, and the other way round.

    A change costs what it changes. Each answers whether it left a source partition without an owner.
    """

    def __init__(self) -> None:
        self._owner: dict[SourcePartition, str] = {}
        self._owned: dict[str, set[SourcePartition]] = {}

    def __getitem__(self, partition: SourcePartition) -> str:
        return self._owner[partition]

    def __iter__(self) -> Iterator[SourcePartition]:
        return iter(self._owner)

    def __len__(self) -> int:
        return len(self._owner)

    def cover(self, partitions: frozenset[SourcePartition]) -> bool:
        """Whether each of them has an owner."""
        return partitions <= self._owner.keys()

    def incarnations(self) -> KeysView[str]:
        """Everybody who owns something."""
        return self._owned.keys()

    def of(self, who: str) -> Set[SourcePartition]:
        """What `who` owns."""
        return self._owned.get(who, frozenset())

    def assign(self, who: str, partitions: Iterable[SourcePartition]) -> bool:
        """`who` owns these and no others."""
        wanted = set(partitions)
        vacated = self.release(who, self._owned.get(who, set()) - wanted)
        for partition in wanted:
            self._forget(partition)
            self._owner[partition] = who
        if wanted:
            self._owned[who] = wanted
        return vacated

    def release(self, who: str, partitions: Iterable[SourcePartition]) -> bool:
        """`who` owns these no more; of others', nothing changes."""
        left = self._owned.get(who, set()).intersection(partitions)
        for partition in left:
            self._forget(partition)
        return bool(left)

    def remove(self, who: str) -> bool:
        """`who` owns nothing."""
        return self.release(who, self._owned.get(who, set()))

    def _forget(self, partition: SourcePartition) -> None:
        who = self._owner.pop(partition, None)
        if who is not None:
            self._owned[who].discard(partition)
            if not self._owned[who]:
                del self._owned[who]
