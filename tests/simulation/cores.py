"""What a simulated world is made of: production's parts, or ones with a bug put in on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from control_topic.parts import Joiner
from control_topic.trust import Trust
from coordinator.core import Coordinator
from coordinator.events import Settings
from participant.core import Participant
from table.memory import MemoryTable
from table.service.ledger import Ledger
from table.service.transactions import Transactions
from tests.simulation.bus import ReadersTrust


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Each is called as production calls the class that is its default.

    `table` is made as `MemoryTable(timeline, pipeline, at=...)`; `assembler` joins a reader's parts;
    `trust` says whose word a worker takes.
    """

    coordinator: Callable[[Settings], Coordinator] = Coordinator
    participant: Callable[..., Participant] = Participant
    ledger: Callable[..., Ledger] = Ledger
    transactions: Callable[..., Transactions] = Transactions
    table: Callable[..., MemoryTable] = MemoryTable
    assembler: Callable[[], Joiner] = Joiner
    trust: Callable[..., Trust] = ReadersTrust
