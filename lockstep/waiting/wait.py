"""Waits until the table has what was asked for, the run has halted, or time is up.

The table decides: its newest commit's offsets, or its watermark, are looked at each second. The broker is
asked where the goal needs the topics' ends, and once the table seems to have it: offsets of another cluster,
of a topic that was made again, or beyond its end say nothing. A watermark needs no broker. The halt is looked
for beside; neither holds up the look at the table for long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from control_topic.messages import Offsets
from control_topic.spelling import one_line
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.units import format_duration
from lockstep.in_time import InTime, TookTooLong
from lockstep.waiting.goals import Goal, ToLag, ToOffsets, ToTime, Verdict, judge, listed, sentence
from lockstep.waiting.halts import TOPIC, Halts, HaltSeen
from lockstep.waiting.table_look import TableLook
from table.checks import identity_problem, position_problem
from table.errors import TableError
from table.kinds import table_kind
from table.service.progress import watermark_json
from table.service.source_facts import MissingTopic, SourceFacts, SourceUnavailable
from table.state import TableState

PERIOD_S = 1.0
HALTS_EVERY = 2
"""Looks at the table for each that asks after a halt."""
ASK_S = 5.0
LOOK_S = 30.0
HALTS_S = 10.0
LAST_S = 1.0
"""For a question that is asked when time is nearly up, or over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the waiting ended: reached, halted, or neither, and then time was up."""

    goal: Goal
    verdict: Verdict
    halted: HaltSeen | None
    newest: TableState | None
    problems: tuple[str, ...]
    """Why more is not known."""

    waited_ms: int
    timeout_ms: int

    def to_json(self) -> dict[str, Any]:
        newest, halted = self.newest, self.halted
        return {
            "reached": self.verdict.reached,
            "halted": {"reason": halted.reason, "word": halted.word} if halted is not None else None,
            "waited_ms": self.waited_ms,
            "timeout_ms": self.timeout_ms,
            "lag_max": self.goal.records_max if isinstance(self.goal, ToLag) else None,
            "lag": self.verdict.lag,
            "complete_through_ms": self.goal.at_ms if isinstance(self.goal, ToTime) else None,
            "watermark": watermark_json(self.verdict.watermark) if self.verdict.watermark else None,
            "missing": listed(self.verdict.missing),
            "missing_total": len(self.verdict.missing),
            "instant": newest.instant if newest is not None else None,
            "transaction": newest.transaction if newest is not None else None,
            "epoch": newest.epoch if newest is not None else None,
            "problems": list(self.problems),
        }

    def to_text(self) -> str:
        """A sentence or two for an operator."""
        if self.verdict.reached:
            instant = self.newest.instant if self.newest is not None else ""
            return f"The table has it: instant {instant}."
        nobody = isinstance(self.goal, ToTime) and self.newest is None  # and so no commit to say anything of
        missing = "" if nobody else sentence(self.goal, self.verdict)
        if self.halted is not None:
            said = f"the run has halted: {one_line(self.halted.reason)}"
            if self.halted.word == TOPIC:
                said += (
                    " (No driver answers: this is the control topic's word, where others may write, too. The "
                    "run's own word are its log and its exit code.)"
                )
            return f"{said} Missing: {missing}." if missing else said
        parts = [part.rstrip(".") for part in (missing, *self.problems) if part] or [
            "nobody says what is missing"
        ]
        return f"not reached within {format_duration(self.timeout_ms)}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What the broker answered."""

    facts: SourceFacts
    ends: Offsets
    asked_after: TableState | None
    """The table's newest commit when it was asked: no end lies before its offsets."""


class Wait:
    """`goal`: with `wanted=None`, what the topics' ends are as soon as the broker can be asked.

    `kafka`: librdkafka's properties with secrets resolved.
    """

    def __init__(
        self,
        config: Config,
        kafka: Mapping[str, str],
        goal: Goal,
        *,
        timeout_ms: int,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        storage, path = config.store_settings(), config.table.path
        self._goal, self._timeout_ms, self._clock_s = goal, timeout_ms, clock_s
        kind = table_kind(config.table.format)
        self._table = TableLook(lambda: kind.reader(path, storage), pipeline=config.pipeline.id)
        self._source = SourceTopics(kafka, config.source.topics, timeout_s=ASK_S)
        self._halts = Halts(config, kafka)
        self._ask_table = InTime(f"the table at {path}")
        self._ask_broker = InTime(f"the Kafka broker at {config.source.bootstrap_servers}")
        self._ask_halts = InTime("the run")
        self._told: _Source | None = None
        """None where it is not known, or too old."""
        self._ends_asked_for = True
        self._table_problem = self._source_problem = ""
        self._looks = 0

    def run(self) -> Outcome:
        """Raises `SourceRefused` and `ConfigError` for what no waiting helps."""
        began_s = self._clock_s()
        deadline_s = began_s + self._timeout_ms / 1_000
        try:
            while True:
                last = self._clock_s() >= deadline_s
                verdict, halted = self._step(deadline_s, last=last)
                if verdict.reached or halted is not None or last:
                    waited_s = self._clock_s() - began_s
                    return self._outcome(verdict, halted, round(waited_s * 1_000))
                time.sleep(max(0.0, min(PERIOD_S, deadline_s - self._clock_s())))
        finally:
            if self._ask_halts.idle:
                self._halts.close()

    def _step(self, deadline_s: float, *, last: bool) -> tuple[Verdict, HaltSeen | None]:
        def left_s(most_s: float) -> float:
            return max(LAST_S, min(deadline_s - self._clock_s(), most_s))

        def reached() -> bool:
            self._look(left_s(LOOK_S), self._table.look)
            if self._needs_ends():
                self._look_at_ends(left_s(2 * ASK_S))
            return self._proved(left_s(LOOK_S))

        if reached():
            return self._judged(), None
        self._looks += 1
        halted = None
        if self._looks % HALTS_EVERY == 1 or last:
            halted = self._look_for_halt(left_s(HALTS_S), patient=not last)
        if halted is not None and reached():  # what the run committed before it counts
            return self._judged(), None
        verdict = self._judged()  # which, without its proof, is not reached
        return replace(verdict, reached=False), halted

    def _proved(self, timeout_s: float) -> bool:
        """Whether it is reached, also where all of the table is looked at."""
        reached = self._reached() and self._ask_table.idle  # else another look's answer comes first
        return reached and self._look(timeout_s, self._table.prove) and self._reached()

    def _reached(self) -> bool:
        return self._judged().reached and self._compared() and not self._not_its_source()

    def _compared(self) -> bool:
        """Whether the broker has told of what the table's offsets are offsets of; a time is no offset."""
        if isinstance(self._goal, ToTime):
            return True
        return self._told is not None and self._told.asked_after is not None

    def _not_its_source(self) -> str:
        """Why the table's offsets say nothing of the topics that are there now; empty where they do."""
        newest, told = self._table.newest, self._told
        if newest is None or told is None:
            return ""
        problem = identity_problem(newest, told.facts.cluster, told.facts.topics)
        if problem or told.asked_after is None:
            return problem
        # What was committed since may lie beyond these ends.
        ends = told.ends
        return position_problem(told.asked_after, told.facts.partitions, ends, ends, on_data_loss="earliest")

    def _judged(self) -> Verdict:
        newest = self._table.newest
        ends = self._told.ends if self._told is not None else None
        if newest is None:
            return judge(self._goal, None, ends)
        return judge(self._goal, newest.offsets, ends, newest.watermark)

    def _look(self, timeout_s: float, work: Callable[[], object]) -> bool:
        """Whether the table was seen."""
        try:
            changed = self._ask_table.ask(work, timeout_s=timeout_s)
        except TookTooLong as error:
            self._table_problem = str(error)
            return False
        self._table_problem = self._table.problem
        self._ends_asked_for = self._ends_asked_for or bool(changed)
        return not self._table_problem

    def _needs_ends(self) -> bool:
        """Ends only grow: while the table stands still, what is too far behind stays so."""
        if isinstance(self._goal, ToTime):
            return False
        if isinstance(self._goal, ToLag):
            return self._ends_asked_for or bool(self._not_its_source())
        return self._goal.wanted is None or (self._judged().reached and not self._reached())

    def _look_at_ends(self, timeout_s: float) -> None:
        newest = self._table.newest

        def told() -> _Source:
            facts = self._source.facts()
            return _Source(facts=facts, ends=self._source.end(facts.partitions), asked_after=newest)

        try:
            found = self._ask_broker.ask(told, timeout_s=timeout_s)
        except TookTooLong as error:
            self._not_told(self._source_problem or str(error))  # which may know why
            return
        except (SourceUnavailable, MissingTopic) as error:
            self._not_told(str(error))
            return
        self._source_problem = ""
        self._told, self._ends_asked_for = found, False
        if isinstance(self._goal, ToOffsets) and self._goal.wanted is None:
            self._goal = ToOffsets(wanted=found.ends)

    def _not_told(self, why: str) -> None:
        self._source_problem = why
        if isinstance(self._goal, ToLag):
            self._told = None  # the topics may have grown since

    def _look_for_halt(self, timeout_s: float, *, patient: bool) -> HaltSeen | None:
        epoch = self._table.newest.epoch if self._table.newest is not None else 0
        try:
            return self._ask_halts.ask(
                lambda: self._halts.look(table_epoch=epoch, patient=patient), timeout_s=timeout_s
            )
        except (TookTooLong, TableError, OSError):
            return None  # whatever it is, the table's look says more of it

    def _outcome(self, verdict: Verdict, halted: HaltSeen | None, waited_ms: int) -> Outcome:
        problems: tuple[str, ...] = ()
        if not verdict.reached:
            problems = (self._table_problem, self._source_problem, self._not_its_source())
        return Outcome(
            goal=self._goal,
            verdict=verdict,
            halted=halted,
            newest=self._table.newest,
            problems=tuple(filter(None, problems)),
            waited_ms=waited_ms,
            timeout_ms=self._timeout_ms,
        )
