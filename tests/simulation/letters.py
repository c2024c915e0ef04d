"""The dead-letter topic: what it has taken, and what it will never take until somebody changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from control_topic.messages import SourcePartition

Letter = tuple[SourcePartition, int]


class DeadLetterTopic:
    """`refused_share`: of the records that are rejected, those that are too large for it. `forbidden`: it
    takes nothing from us. Either is for good: whoever tries is told the same, until an operator mends it.
    """

    def __init__(self, seed: int, refused_share: float) -> None:
        self._seed = seed
        self._refused_share = refused_share
        self._refused: dict[Letter, bool] = {}
        self.forbidden = False
        self.taken: Counter[Letter] = Counter()

    def refuses(self, letter: Letter) -> bool:
        if self.forbidden:
            return True
        if not self._refused_share:
            return False
        if letter not in self._refused:
            random = Random(f"letter/{self._seed}/{letter[0]}/{letter[1]}")
            self._refused[letter] = random.random() < self._refused_share
        return self._refused[letter]

    def refusal(self, letters: Sequence[Letter]) -> str:
        """Why one of these will never be taken, as production says it: those before it are. Else empty."""
        for place, letter in enumerate(letters):
            if self.refuses(letter):
                self.taken.update(letters[:place])
                return f"{about(letter)}is refused by the dead-letter topic"
        return ""

    def mend(self) -> None:
        """Its limit is raised, and we may write to it."""
        self.forbidden, self._refused_share = False, 0.0


def about(letter: Letter) -> str:
    """How whoever is refused names the record."""
    partition, offset = letter
    return f"the rejected record {partition.topic}-{partition.number}-{offset} "
