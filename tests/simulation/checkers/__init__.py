"""The invariants of DESIGN.md, one checker each, watching a simulated world. They share nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.simulation.checkers.aborted import AbortedIsNeverCommitted
from tests.simulation.checkers.aligned import NoTransactionSpansABoundary
from tests.simulation.checkers.base import HOOKS, Checker
from tests.simulation.checkers.covers import CommitsCoverTheExpectedSet
from tests.simulation.checkers.dead_letters import RejectsAreKept
from tests.simulation.checkers.fence import StaleCallsAreRefused
from tests.simulation.checkers.heard import WhatIsHeardWasSaid
from tests.simulation.checkers.idle import IdleHoldsNoInstant
from tests.simulation.checkers.l1_bounded import TransactionsEnd
from tests.simulation.checkers.l2_idle_partition import NobodyIsWaitedForInVain
from tests.simulation.checkers.l3_lag import LagReturnsToZero
from tests.simulation.checkers.memory import WhatIsHeldIsBounded
from tests.simulation.checkers.orders import OrdersAreDone
from tests.simulation.checkers.pace import WhatFollowsIsSmaller
from tests.simulation.checkers.patience import WritersAreWaitedFor
from tests.simulation.checkers.paused import NothingIsDoneWhilePaused
from tests.simulation.checkers.poison import HaltsAfterEverythingBefore
from tests.simulation.checkers.prompt import AbortsArePrompt
from tests.simulation.checkers.s1_once import EveryOffsetOnce
from tests.simulation.checkers.s2_chain import RangesChain
from tests.simulation.checkers.s3_rows import RowsAreTheRecords
from tests.simulation.checkers.s4_whole import CommitsAreWhole
from tests.simulation.checkers.s5_forward import OffsetsGoForward
from tests.simulation.checkers.s6_epochs import StaleEpochsHaveNoEffect
from tests.simulation.checkers.s7_ack import AckAfterCommit
from tests.simulation.checkers.s8_group import GroupBehindTable
from tests.simulation.checkers.s9_repeats import RepeatsAreNoOps
from tests.simulation.checkers.s10_table_alone import ARestartNeedsTheTableAlone
from tests.simulation.checkers.s11_instants import CompletedOrRolledBack
from tests.simulation.checkers.s12_files import NoStrayFiles
from tests.simulation.checkers.s13_identity import ReplacedSourcesAreRefused
from tests.simulation.checkers.s14_times import RequestedTimesGrow
from tests.simulation.checkers.s15_fields import NoFieldIsLost
from tests.simulation.checkers.s16_readable import CommitsCoverTheirFiles
from tests.simulation.checkers.scheduled import ScheduledTimesAreKept
from tests.simulation.checkers.strangers import OtherRunsHaveNoEffect
from tests.simulation.checkers.tuned import SettingsAreInForce
from tests.simulation.checkers.w1_complete import WatermarksAreNotPassed
from tests.simulation.checkers.w2_forward import WatermarksGoForward
from tests.simulation.checkers.w3_marks import MarksAreOfTheRows
from tests.simulation.checkers.witnesses import TheLastRecordIsNamed

if TYPE_CHECKING:
    from tests.simulation.world import World

CHECKERS: tuple[type[Checker], ...] = (
    EveryOffsetOnce,
    RangesChain,
    TheLastRecordIsNamed,
    RowsAreTheRecords,
    CommitsAreWhole,
    OffsetsGoForward,
    StaleEpochsHaveNoEffect,
    AckAfterCommit,
    GroupBehindTable,
    RepeatsAreNoOps,
    ARestartNeedsTheTableAlone,
    CompletedOrRolledBack,
    NoStrayFiles,
    ReplacedSourcesAreRefused,
    RequestedTimesGrow,
    NoFieldIsLost,
    CommitsCoverTheirFiles,
    TransactionsEnd,
    NobodyIsWaitedForInVain,
    LagReturnsToZero,
    IdleHoldsNoInstant,
    CommitsCoverTheExpectedSet,
    AbortsArePrompt,
    WritersAreWaitedFor,
    WhatFollowsIsSmaller,
    RejectsAreKept,
    WhatIsHeldIsBounded,
    HaltsAfterEverythingBefore,
    AbortedIsNeverCommitted,
    StaleCallsAreRefused,
    OtherRunsHaveNoEffect,
    WhatIsHeardWasSaid,
    NothingIsDoneWhilePaused,
    OrdersAreDone,
    SettingsAreInForce,
    NoTransactionSpansABoundary,
    ScheduledTimesAreKept,
    WatermarksAreNotPassed,
    WatermarksGoForward,
    MarksAreOfTheRows,
)


def all_checkers() -> list[Checker]:
    return [checker() for checker in CHECKERS]


class Checks:
    """Tells every checker what it wants to hear, and no more."""

    committed: Callable[..., None]
    served: Callable[..., None]
    group_committed: Callable[..., None]
    held: Callable[..., None]
    participant_heard: Callable[..., None]
    decision_heard: Callable[..., None]
    coordinator_handled: Callable[..., None]
    coordinator_heard: Callable[..., None]
    coordinator_directed: Callable[..., None]
    coordinator_lost: Callable[..., None]
    coordinator_acts: Callable[..., None]
    coordinator_sent: Callable[..., None]
    ordered: Callable[..., None]
    orders_done: Callable[..., None]
    ended: Callable[..., None]
    settled: Callable[..., None]
    at_end: Callable[..., None]

    def __init__(self, world: World, checkers: list[Checker]) -> None:
        for checker in checkers:
            checker.world = world
        told: dict[str, list[Callable[..., None]]] = {hook: [] for hook in HOOKS}
        for checker in checkers:
            for hook in _hooks_of(type(checker)):
                told[hook].append(getattr(checker, hook))
        for hook, concerned in told.items():
            setattr(self, hook, _to_all(concerned))


@cache
def _hooks_of(kind: type[Checker]) -> tuple[str, ...]:
    """What checkers of this kind want to hear."""
    return tuple(hook for hook in HOOKS if getattr(kind, hook) is not getattr(Checker, hook))


def _to_all(hooks: list[Callable[..., None]]) -> Callable[..., None]:
    """Call these hooks in turn. Arguments are named: packing them costs as much as a quick hook."""
    if len(hooks) == 1:
        return hooks[0]
    if not hooks:
        return _to_nobody

    def told_two(first: Any, second: Any) -> None:
        for hook in hooks:
            hook(first, second)

    def told_four(first: Any, second: Any, third: Any, fourth: Any) -> None:
        for hook in hooks:
            hook(first, second, third, fourth)

    def told_five(first: Any, second: Any, third: Any, fourth: Any, fifth: Any) -> None:
        for hook in hooks:
            hook(first, second, third, fourth, fifth)

    def told(*args: Any) -> None:
        for hook in hooks:
            hook(*args)

    return {2: told_two, 4: told_four, 5: told_five}.get(_arguments_of(hooks[0]), told)


def _to_nobody(*_args: Any) -> None:
    """No checker listens."""


def _arguments_of(hook: Callable[..., None]) -> int:
    code = hook.__code__  # type: ignore[attr-defined]
    count: int = code.co_argcount
    return count - 1
