"""Workers of one table, each with its end of the exchange, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from participant.exchange.exchange import Exchange
from participant.exchange.writer import ExchangingWriter
from table.hudi.files.handing import InsertHanding
from tests.unit.table.hudi.files.test_base_writer import SCHEMA, open_writer

DAYS = 20
DEADLINE_S = 600


@dataclass
class Given(Exception):
    """The plane was told to give up."""


@dataclass
class Crew:
    """Workers of one table, each with a thread of its own."""

    base: Path
    homes: int = 1
    token: str = "secret"
    bytes_max: int = 1 << 20
    names: tuple[str, ...] = ("a", "b", "c")
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    given_up: dict[str, threading.Event] = field(default_factory=dict)

    def start(self, stack: ExitStack) -> None:
        for name in self.names:
            self.given_up[name] = threading.Event()
            self.exchanges[name] = Exchange(
                incarnation=name,
                token=self.token,
                host="127.0.0.1",
                writers_max=len(self.names),
                homes=self.homes,
                bytes_max=self.bytes_max,
                arrived=lambda: None,
            )
            stack.callback(self.exchanges[name].close)

    @property
    def takers(self) -> dict[str, str]:
        return {name: exchange.address for name, exchange in self.exchanges.items()}

    def writer(self, name: str, transaction: str = "t1") -> ExchangingWriter:
        def waits() -> None:
            if self.given_up[name].is_set():
                raise Given

        number = self.names.index(name)
        inner = open_writer(self.base, writer_number=number, incarnation=name)
        handing = InsertHanding(SCHEMA.names)
        return self.exchanges[name].writer(inner, handing, transaction, self.takers, waits)


@contextmanager
def started(base: Path, **changes: Any) -> Iterator[Crew]:
    (base / ".hoodie").mkdir()
    with ExitStack() as stack:
        crew = Crew(base, **changes)
        crew.start(stack)
        yield crew
