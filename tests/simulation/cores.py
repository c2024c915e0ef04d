"""What a simulated world is made of: production's parts, or ones with a bug put in on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from control_topic.parts import Joiner
from control_topic.trust import Trust
from coordinator.core import Coordinator
from coordinator.events import Settings
from coordinator.hearing import Hearing
from coordinator.pace import Pace
from coordinator.rounds import Rounds
from participant.core import Participant
from participant.events import Settings as ParticipantSettings
from participant.hearing import Hearing as ParticipantHearing
from participant.intake import Intake
from participant.repeats import Repeats
from participant.rounds import Rounds as ParticipantRounds
from table.memory.table import MemoryTable
from table.service.ledger import Ledger
from table.service.transactions import Transactions
from tests.simulation.bus import ReadersTrust


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Each is called as production calls the class that is its default; a core is made of its own parts."""

    coordinator: Callable[..., Coordinator] = Coordinator
    hearing: Callable[..., Hearing] = Hearing
    rounds: Callable[..., Rounds] = Rounds
    pace: Callable[..., Pace] = Pace
    participant: Callable[..., Participant] = Participant
    hearing_of_participant: Callable[..., ParticipantHearing] = ParticipantHearing
    intake: Callable[..., Intake] = Intake
    repeats: Callable[..., Repeats] = Repeats
    rounds_of_participant: Callable[..., ParticipantRounds] = ParticipantRounds
    ledger: Callable[..., Ledger] = Ledger
    transactions: Callable[..., Transactions] = Transactions
    table: Callable[..., MemoryTable] = MemoryTable
    """Made as `MemoryTable(timeline, pipeline, at=...)`."""
    assembler: Callable[[], Joiner] = Joiner
    """Joins a reader's parts."""
    trust: Callable[..., Trust] = ReadersTrust
    """Whose word a worker takes."""

    def new_coordinator(self, settings: Settings) -> Coordinator:
        """Its core, of these parts."""
        return self.coordinator(settings, hearing=self.hearing, rounds=self.rounds, pace=self.pace)

    def new_participant(self, settings: ParticipantSettings) -> Participant:
        """Its core, of these parts."""
        return self.participant(
            settings,
            hearing=self.hearing_of_participant,
            intake=self.intake,
            repeats=self.repeats,
            rounds=self.rounds_of_participant,
        )
