"""S4: a transaction is visible whole or not at all: each commit's files hold the records of its ranges."""

from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class CommitsAreWhole(Checker):
    name = "S4"

    def __init__(self) -> None:
        self._transactions: dict[str, str] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        world = self.world
        other = self._transactions.setdefault(state.transaction, instant.time)
        self.require(
            other == instant.time, f"transaction {state.transaction} is in {other} and {instant.time}"
        )
        for file in instant.files:
            if file.path not in world.storage.timeline.files:
                self.violated(f"{file.path} is committed and does not exist")
        rows = sorted(row for file in instant.files for row in world.storage.rows[file.path])
        rejected = world.log.bad_in(state.ranges) if world.on_error == "dead_letter" else ()
        records = sorted(
            (r.partition, offset, 0)
            for r in state.ranges
            for offset in world.log.between(r.partition, r.start, r.next, state.lost)
            if not rejected or (r.partition, offset) not in rejected
        )
        if rows != records:  # compaction may have taken some before they were read
            gone = {(p, offset, 0) for p, offsets in world.log.compacted.items() for offset in offsets}
            held = set(rows)
            records = [record for record in records if record in held or record not in gone]
        if rows != records:
            self.violated(
                f"instant {instant.time} holds {len(rows)} rows for {len(records)} records; "
                f"they differ in {sorted(set(rows) ^ set(records))[:5]}"
            )
