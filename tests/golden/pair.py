"""Both cores in one room: coordinators, participants, a small table and a bus, driven by a script.

A script is a list of commands; each is followed by the whole conversation that it causes, a line per
message sent, effect asked for and state reached. Nothing is random; time passes only by `pass`.

    worker a [until 0=5 …]       a participant with incarnation a
    own a 0 1 / disown a 0       the group gives or takes source partitions
    read a 0 5 [rows 3]          its consumer goes on to offset 5 of source partition 0
    block a 0                    a record that cannot be passed
    slow a / finish a            a's files take long from now on / they are closed
    wrote a 7                    they have got on by so many steps in all
    coordinate a                 source partition 0 is a's: a coordinator starts there
    pass 1000                    milliseconds go by, with a tick for everybody every 250
    lose TYPE [a]                the next message of this type (from a) is lost
    next CALL RESULT [landed]    the next such call is answered so, having had its effect or not
    kill a / died a              a's process ends / the driver says so
    direct drain|halt|stop       what the driver wants of the run
    order commit|pause|resume    what an operator orders of it; also: order set interval_ms=400 …
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from control_topic.controls import Tuning
from control_topic.messages import DataFile, Message, SourcePartition
from coordinator import events as c
from coordinator.core import Coordinator
from participant import events as p
from participant.core import Participant
from table.service.calls import Order
from table.service.orders import Orders
from tests.simulation.transcript import show

TICK_MS = 250


def partition(number: str) -> SourcePartition:
    return SourcePartition("events", int(number))


class Table:
    """What the table service would answer, without its checks: those have tests of their own."""

    def __init__(self) -> None:
        self.offsets: dict[SourcePartition, int] = {}
        self.partitions: frozenset[SourcePartition] = frozenset()
        self.epoch = 0
        self.done: set[str] = set()
        self.instants: dict[str, str] = {}
        self.scripted: dict[str, deque[tuple[c.Result, bool]]] = {}

    def answer(self, call: c.Call) -> dict[str, Any]:
        """The fields of the `Completed` for this call."""
        planned = self.scripted.get(type(call).__name__.lower())
        if planned:
            result, landed = planned.popleft()
            if landed:
                self._serve(call)
            return {"result": result, "reason": "as scripted"}
        return self._serve(call)

    def _serve(self, call: c.Call) -> dict[str, Any]:
        ok: dict[str, Any] = {"result": c.Result.OK}
        match call:
            case c.Survey():
                return {**ok, "epoch": self.epoch}
            case c.Register():
                self.epoch = call.epoch
            case c.Recover():
                return {**ok, "committed": dict(self.offsets), "partitions": self.partitions}
            case c.Begin():
                instant = self.instants.setdefault(call.transaction, f"i{len(self.instants) + 1}")
                return {**ok, "instant": instant, "committed": dict(self.offsets)}
            case c.Commit():
                self.done.add(call.transaction)
                self.offsets |= {r.partition: r.next for s in call.statuses for r in s.ranges}
                return {**ok, "took_ms": {"lock": 2, "write": 40}}
            case c.Find():
                found = call.transaction in self.done
                return {"result": c.Result.COMMITTED if found else c.Result.ABSENT}
            case c.Abort() if call.transaction in self.done:
                return {"result": c.Result.COMMITTED}
        return ok


class Pair:
    """The room. `run(command)` gives the lines that the command caused."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.table = Table()
        self.participants: dict[str, Participant] = {}
        self.coordinators: dict[str, Coordinator] = {}
        self.homes: dict[str, str] = {}
        self._sequences: dict[str, int] = {}
        self._log: deque[Message] = deque()
        self._work: deque[tuple[str, Any]] = deque()
        self._lost: list[tuple[str, str]] = []
        self._slow: dict[str, p.Flush | None] = {}
        self._begun = 0
        self.orders = Orders(Tuning(interval_ms=1_000, write_timeout_ms=3_000))
        self._lines: list[str] = []

    def run(self, command: str) -> list[str]:
        """Do one command and everything that follows from it."""
        self._lines = []
        name, *words = command.split()
        getattr(self, "do_" + name)(*words)
        self._settle()
        return self._lines

    # --- commands ---------------------------------------------------------------------------------

    def do_worker(self, name: str, *words: str) -> None:
        until = {partition(n): int(o) for n, o in (word.split("=") for word in words[1:])}
        self.participants[name] = Participant(
            p.Settings(
                pipeline="p",
                run="run",
                incarnation=name,
                interval_ms=1_000,
                memory_bytes_max=1_000,
                until=until,
            )
        )

    def do_own(self, name: str, *numbers: str) -> None:
        gained = {partition(n): self.table.offsets.get(partition(n), 0) for n in numbers}
        self.table.partitions |= gained.keys()
        for one in gained:
            self.table.offsets.setdefault(one, 0)
        self._give(name, p.Assigned(now_ms=self.now_ms, offsets=gained))

    def do_disown(self, name: str, *numbers: str) -> None:
        self._give(name, p.Revoked(now_ms=self.now_ms, partitions=tuple(map(partition, numbers))))

    def do_read(self, name: str, number: str, next_offset: str, *words: str) -> None:
        owned = self.participants[name].owned[partition(number)]
        records = int(words[1]) if words else int(next_offset) - owned.next
        self._give(
            name,
            p.Buffered(
                now_ms=self.now_ms,
                partition=partition(number),
                generation=owned.generation,
                start=owned.next,
                next=int(next_offset),
                records=records,
                size_bytes=10 * records,
            ),
        )

    def do_block(self, name: str, number: str) -> None:
        generation = self.participants[name].owned[partition(number)].generation
        self._give(name, p.Blocked(now_ms=self.now_ms, partition=partition(number), generation=generation))

    def do_slow(self, name: str) -> None:
        self._slow[name] = None

    def do_finish(self, name: str) -> None:
        order = self._slow.pop(name)
        assert order is not None, f"{name} closes no files"
        self._give(name, self._flush(name, order))

    def do_wrote(self, name: str, steps: str) -> None:
        order = self._slow[name]
        assert order is not None, f"{name} closes no files"
        event = p.Wrote(
            now_ms=self.now_ms,
            transaction=order.transaction,
            files=int(steps) // 2,
            size_bytes=10 * int(steps),
            steps=int(steps),
        )
        self._give(name, event)

    def do_coordinate(self, home: str) -> None:
        name = f"c{len(self.homes) + 1}"
        self.homes[name] = home
        self.coordinators[name] = Coordinator(
            c.Settings(pipeline="p", run="run", incarnation=name, interval_ms=1_000, write_timeout_ms=3_000)
        )
        self._give(name, c.Launch(now_ms=self.now_ms, nonce=self._nonce()))

    def do_pass(self, for_ms: str) -> None:
        until_ms = self.now_ms + int(for_ms)
        while self.now_ms < until_ms:
            self.now_ms = min(self.now_ms + TICK_MS, until_ms)
            for name in [*self.coordinators, *self.participants]:
                self._give(name, self._tick(name))
            self._settle()

    def do_lose(self, kind: str, sender: str = "") -> None:
        self._lost.append((kind, sender))

    def do_next(self, call: str, result: str, *landed: str) -> None:
        planned = self.table.scripted.setdefault(call, deque())
        planned.append((c.Result(result), bool(landed)))

    def do_kill(self, name: str) -> None:
        """Nothing is said to anybody; what the process had sent is out."""
        del self.participants[name]
        for coordinator in [one for one, home in self.homes.items() if home == name]:
            self.coordinators.pop(coordinator, None)

    def do_died(self, name: str) -> None:
        for coordinator in list(self.coordinators):
            self._give(coordinator, c.WorkerDied(now_ms=self.now_ms, nonce=self._nonce(), incarnation=name))

    def do_direct(self, mode: str) -> None:
        for coordinator in list(self.coordinators):
            directed = c.Directed(now_ms=self.now_ms, nonce=self._nonce(), mode=c.RunMode(mode), reason=mode)
            self._give(coordinator, directed)

    def do_order(self, action: str, *words: str) -> None:
        settings = {name: int(value) for name, value in (word.split("=") for word in words)}
        self.orders.take(self.now_ms, Order(action=action, settings=settings))
        self._tell_orders()

    def _tell_orders(self) -> None:
        """The driver's directive, to everybody."""
        controls = self.orders.controls(self.now_ms)
        assert controls is not None and controls.tuning is not None
        mode = c.RunMode.PAUSE if controls.pause else c.RunMode.RUN
        for name in list(self.coordinators):
            directed = c.Directed(now_ms=self.now_ms, nonce=self._nonce(), mode=mode, controls=controls)
            self._give(name, directed)
        for name in list(self.participants):
            self._give(name, p.Tuned(now_ms=self.now_ms, tuning=controls.tuning))

    def _note_done(self) -> None:
        """As coordinators report it."""
        settled = max((one.snapshot().settled for one in self.coordinators.values()), default=0)
        if settled > self.orders.settled:
            self.orders.heard(settled)
            self._line("", "all", f"orders are done up to {settled}")
            self._tell_orders()

    # --- what follows -----------------------------------------------------------------------------

    def _nonce(self) -> str:
        return f"t{self._begun + 1}"

    def _tick(self, name: str) -> Any:
        if name in self.coordinators:
            return c.Tick(now_ms=self.now_ms, nonce=self._nonce())
        return p.Tick(now_ms=self.now_ms)

    def _give(self, name: str, event: Any) -> None:
        self._work.append((name, event))

    def _settle(self) -> None:
        """Until nobody has anything to say any more: effects first, then one message to everybody."""
        while self._work or self._log:
            if self._work:
                self._feed(*self._work.popleft())
                if not self._log and not self._work:
                    self._note_done()
                continue
            message = self._log.popleft()
            for name in self.coordinators:
                self._give(name, c.Received(now_ms=self.now_ms, nonce=self._nonce(), message=message))
            for name in self.participants:
                self._give(name, p.Received(now_ms=self.now_ms, message=message))

    def _feed(self, name: str, event: Any) -> None:
        core: Any = self.coordinators.get(name) or self.participants.get(name)
        if core is None:
            return
        if isinstance(event, c.Event) and event.nonce != self._nonce():
            event = replace(event, nonce=self._nonce())
        before = core.state
        actions = core.handle(event)
        if core.state is not before:
            self._line(name, "is", core.state.value.upper())
        for action in actions:
            self._perform(name, action)

    def _perform(self, name: str, action: Any) -> None:
        if isinstance(action, (c.Send, p.Send)):
            self._send(name, action)
        elif isinstance(action, (c.Stop, p.Stop)):
            self._line(name, "does", show(action))
            self.coordinators.pop(name, None) or self.participants.pop(name, None)
        elif isinstance(action, p.Flush):
            self._line(name, "does", show(action).replace(f"call={action.call} ", ""))
            if name in self._slow:
                self._slow[name] = action
            else:
                self._give(name, self._flush(name, action))
        elif isinstance(action, p.FetchOffsets):
            self._give(
                name,
                p.OffsetsFetched(now_ms=self.now_ms, call=action.call, committed=dict(self.table.offsets)),
            )
        elif name in self.coordinators:
            self._call(name, action)
        else:
            self._line(name, "does", show(action))

    def _send(self, name: str, action: Any) -> None:
        message = Message(
            pipeline="p",
            run="run",
            epoch=action.epoch,
            sender=name,
            incarnation=name,
            sequence=self._sequences.get(name, 0),
            sent_at_ms=self.now_ms,
            body=action.body,
        )
        self._sequences[name] = message.sequence + 1
        said = f"{message.type_name} {show(action.body).partition(' ')[2]}".rstrip()
        lost = [(kind, who) for kind, who in self._lost if kind == message.type_name and who in ("", name)]
        if lost:
            self._lost.remove(lost[0])
            self._line(name, "says", f"{said} (lost)")
        else:
            self._line(name, "says", f"{said} (epoch {message.epoch})")
            self._log.append(message)

    def _call(self, name: str, call: c.Call) -> None:
        if isinstance(call, c.Begin):
            self._begun += call.transaction == self._nonce()
        answer = self.table.answer(call)
        shown = show({k: v for k, v in answer.items() if k != "result"}) if len(answer) > 1 else ""
        asked = show(call).replace(f"call={call.call}", "").replace("  ", " ").rstrip()
        self._line(name, "asks", f"{asked} -> {answer['result'].value} {shown}".rstrip())
        self._give(name, c.Completed(now_ms=self.now_ms, nonce=self._nonce(), call=call.call, **answer))

    def _flush(self, name: str, action: p.Flush) -> p.Flushed:
        work = self.participants[name].work
        rows = sum(r.records for r in work.ranges) if work is not None else 0
        path = f"{action.transaction}/{name}"
        file = DataFile(path=path, body=name, table_partition="", rows=rows, size_bytes=0)
        files = (file,) if rows else ()
        return p.Flushed(now_ms=self.now_ms, call=action.call, files=files)

    def _line(self, who: str, what: str, content: str) -> None:
        self._lines.append(f"{self.now_ms / 1000:7.3f}  {who:<3} {what:<5} {content}")
