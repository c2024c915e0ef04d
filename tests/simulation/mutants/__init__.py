"""Bugs put into the pipeline on purpose, one each: the simulator must find them, or it proves nothing.

Each is a small patch of production code, and names the one checker that is about it. That checker, alone,
must find the bug within `SCHEDULES_MAX` schedules, and pass the same schedule without it.

Some protections are doubled (the table service checks again what the coordinator checked), so that a bug may
be harmless to the table and still be one: then a checker of the conversation has to see it.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.checkers.aborted import AbortedIsNeverCommitted
from tests.simulation.checkers.aligned import NoTransactionSpansABoundary
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
from tests.simulation.mutants import coordinators as c
from tests.simulation.mutants import participants as p
from tests.simulation.mutants import readers as r
from tests.simulation.mutants import services as s
from tests.simulation.mutants import strangers as t
from tests.simulation.mutants import times as w
from tests.simulation.mutants import watermarks as m
from tests.simulation.mutants.base import Mutant

TWO_DRIVERS = ("second_driver",)
PARTS = ("parts",)
POISON = ("poison_record",)
BAD_RECORDS = ("bad_records",)
REFUSED = ("reject_refused", "letters_forbidden")
LATE_CALLS = ("call_late",)
FORGED = ("forged_gap_ms",)
LOST_MESSAGES = ("message_lost",)
OLD_MESSAGES = ("message_repeated", "message_delayed")
DAMAGED = ("batch_damaged",)
ADDED = ("partition_added",)
BEGINS_LATER = ("log_begins_later",)
CLOCKS = ("driver_clock_jump_gap_ms", "driver_clock_wrong")
WALL_CLOCKS = ("wall_clock_jump_gap_ms",)
SCHEMAS = ("schema_gap_ms",)
ORDERED = ("order_gap_ms",)
KILLED = ("worker_killed_gap_ms", "crash_at_spot", "crash_at_action")

_ALL = (
    Mutant(AckAfterCommit, {"rounds": c.AckBeforeCommit}),
    Mutant(AckAfterCommit, {"rounds": c.UnknownTakenAsCommitted}),
    Mutant(AbortedIsNeverCommitted, {"rounds": c.UnknownTakenAsFailed}),
    Mutant(CommitsCoverTheExpectedSet, {"rounds": c.CountInsteadOfSet}),
    Mutant(CommitsCoverTheExpectedSet, {"rounds": c.LateWriteStatusAccepted}, OLD_MESSAGES),
    Mutant(CommitsCoverTheExpectedSet, {"rounds": c.UnlistedIncarnationTaken}, OLD_MESSAGES),
    Mutant(CommitsCoverTheExpectedSet, {"coordinator": c.AbortsAfterTheCommitCall}, KILLED),
    Mutant(AbortsArePrompt, {"rounds": c.LeaveIgnored}),
    Mutant(AbortsArePrompt, {"rounds": c.NewIncarnationIgnored}),
    Mutant(WritersAreWaitedFor, {"rounds": c.ProgressNotCounted}),
    Mutant(WritersAreWaitedFor, {"rounds": c.WritesForEver}, ("endless_writer",)),
    Mutant(WhatFollowsIsSmaller, {"pace": c.LongRoundsForgotten}),
    Mutant(WhatFollowsIsSmaller, {"pace": c.GivenUpRoundsForgotten}),
    Mutant(WhatFollowsIsSmaller, {"pace": c.SmallForEver}),
    Mutant(WhatFollowsIsSmaller, {"rounds_of_participant": p.LimitUnheard}),
    Mutant(NobodyIsWaitedForInVain, {"rounds": c.IdlePartitionWaitedFor}),
    Mutant(TransactionsEnd, {"rounds": c.IntervalForgotten}),
    Mutant(LagReturnsToZero, {"coordinator": c.ForgetsWhatItDecided}, LOST_MESSAGES),
    Mutant(IdleHoldsNoInstant, {"rounds": c.NewTransactionAfterUnknownBegin, "coordinator": c.NoStepChecked}),
    Mutant(RepeatsAreNoOps, {"hearing": c.CoordinatorObeysReplays}),
    Mutant(OtherRunsHaveNoEffect, {"hearing": c.CoordinatorHearsAnotherRun, "trust": t.AllRunsTrusted}),
    Mutant(StaleEpochsHaveNoEffect, {"hearing_of_participant": p.OldClaimObeyed}),
    Mutant(RepeatsAreNoOps, {"hearing_of_participant": p.ParticipantObeysReplays}),
    Mutant(OtherRunsHaveNoEffect, {"hearing_of_participant": p.OldHaltObeyed, "trust": t.AllRunsTrusted}),
    Mutant(CommitsAreWhole, {"intake": p.RangeOffByOne}),
    Mutant(RowsAreTheRecords, {"intake": p.GapTakenAsLoss}),
    Mutant(CommitsAreWhole, {"intake": p.LossUnreported}),
    Mutant(RejectsAreKept, {"rounds_of_participant": p.RejectsUnreported, "transactions": s.RowsNotCompared}),
    Mutant(
        RejectsAreKept,
        {"rounds_of_participant": p.RejectsWithoutEnd, "transactions": s.RejectsNotCounted},
        BAD_RECORDS,
    ),
    Mutant(RejectsAreKept, {"transactions": s.RejectsNotCounted}, BAD_RECORDS),
    Mutant(RejectsAreKept, {"rounds_of_participant": p.ShareNeverJudged}, BAD_RECORDS),
    Mutant(RejectsAreKept, {"transactions": s.AllRejectsNamed}, BAD_RECORDS),
    Mutant(RejectsAreKept, {"transactions": s.RejectsCountedByName}, BAD_RECORDS),
    Mutant(
        RejectsAreKept,
        {"rounds_of_participant": p.NamedRejectsReported, "transactions": s.RowsNotCompared},
        BAD_RECORDS,
    ),
    Mutant(
        RejectsAreKept,
        {"rounds_of_participant": p.UndeliverablePassed, "transactions": s.RowsNotCompared},
        REFUSED,
    ),
    Mutant(LagReturnsToZero, {"rounds_of_participant": p.UndeliverableUnheard}, REFUSED),
    Mutant(WhatIsHeldIsBounded, {"intake": p.RejectsHoldNoMemory}, BAD_RECORDS),
    Mutant(RowsAreTheRecords, {"intake": p.BufferedButNotWritten, "transactions": s.RowsNotCompared}),
    Mutant(RowsAreTheRecords, {"transactions": s.RowsNotCompared, "rounds_of_participant": p.FileLeftOut}),
    Mutant(
        RowsAreTheRecords,
        {"rounds_of_participant": p.FilesOfAnEarlierTransaction, "table": s.FilesNotLookedAt},
    ),
    Mutant(CommitsAreWhole, {"intake": p.AbortWithoutRewind}),
    Mutant(TheLastRecordIsNamed, {"rounds_of_participant": p.LastRecordUnsaid}),
    Mutant(TheLastRecordIsNamed, {"transactions": s.OldRecordsForgotten}),
    Mutant(WatermarksAreNotPassed, {"transactions": m.LatenessForgotten}),
    Mutant(WatermarksAreNotPassed, {"transactions": m.QuietIsIdle}),
    Mutant(WatermarksGoForward, {"transactions": m.WatermarkOfItsOwnRanges}),
    Mutant(MarksAreOfTheRows, {"rounds_of_participant": m.EventTimesUnsaid}),
    Mutant(MarksAreOfTheRows, {"rounds": m.WatermarkUnsaid}),
    Mutant(GroupBehindTable, {"rounds_of_participant": p.GroupBeforeAck}),
    Mutant(NobodyIsWaitedForInVain, {"rounds_of_participant": p.ZeroRowRangesLeftOut}),
    Mutant(LagReturnsToZero, {"intake": p.PauseNeverEnds}),
    Mutant(HaltsAfterEverythingBefore, {"intake": p.PoisonToldAtOnce}, POISON),
    Mutant(LagReturnsToZero, {"repeats": p.SilentWhileItWaits}, LOST_MESSAGES),
    Mutant(LagReturnsToZero, {"intake": p.ReportTakenForCommitted}),
    Mutant(StaleCallsAreRefused, {"ledger": s.NoFence}),
    Mutant(
        StaleEpochsHaveNoEffect,
        {"ledger": s.FenceOutsideTheLockOnly, "table": s.NothingCompared},
        TWO_DRIVERS,
    ),
    Mutant(EveryOffsetOnce, {"rounds": c.CommittedTwice, "table": s.NothingCompared}, LATE_CALLS),
    Mutant(OffsetsGoForward, {"transactions": s.OffsetsNotCarriedOver}),
    Mutant(RangesChain, {"transactions": s.ZeroRowRangesUnrecorded}),
    Mutant(
        ARestartNeedsTheTableAlone,
        {"transactions": s.OffsetsFromTheGroup, "rounds_of_participant": s.GroupsOffsetsSeen},
    ),
    Mutant(RangesChain, {"transactions": s.LatestResolvedTwice, "table": s.NothingCompared}),
    Mutant(
        CompletedOrRolledBack,
        {
            "table": s.RollbackWithoutProof,
            "transactions": s.RollsBackWhatItIsTold,
            "rounds": c.UnknownIsRolledBack,
        },
    ),
    Mutant(EveryOffsetOnce, {"table": s.NewestByCompletion}, CLOCKS),
    Mutant(RequestedTimesGrow, {"table": s.ClockNotAwaited}, CLOCKS),
    Mutant(CommitsCoverTheirFiles, {"transactions": s.FirstWorkersColumns}, SCHEMAS),
    Mutant(CommitsCoverTheirFiles, {"rounds_of_participant": p.ColumnsSaidOnce}, SCHEMAS),
    Mutant(NoFieldIsLost, {"table": s.TheTablesColumnsForgotten}, SCHEMAS),
    Mutant(NoStrayFiles, {"rounds_of_participant": p.FilesWithoutTheirInstant, "table": s.FilesNotLookedAt}),
    Mutant(NoStrayFiles, {"table": s.SweepTakesOpenFiles}),
    Mutant(ReplacedSourcesAreRefused, {"transactions": s.IdentityBelieved}),
    Mutant(
        LagReturnsToZero,
        {
            "rounds": c.StartsWithoutAPlace,
            "participant": p.NoOffsetIsZero,
            "transactions": s.NothingAdmitted,
        },
        BEGINS_LATER,
    ),
    Mutant(LagReturnsToZero, {"intake": p.BlockedUnheard}, DAMAGED),
    Mutant(RowsAreTheRecords, {"transactions": s.AddedPartitionsBeginAtTheEnd}, ADDED),
    Mutant(NothingIsDoneWhilePaused, {"rounds": c.PauseUnheard, "ledger": s.BegunWhilePaused}, ORDERED),
    Mutant(NothingIsDoneWhilePaused, {"rounds": c.PauseLeavesItOpen}, ORDERED),
    Mutant(
        NothingIsDoneWhilePaused,
        {"rounds": c.CommitBeforeThePauseBegins, "ledger": s.BegunForACommitBeforeThePause},
        ORDERED,
    ),
    Mutant(OrdersAreDone, {"rounds": c.AnyCommitSettles}, ORDERED),
    Mutant(OrdersAreDone, {"rounds": c.CommitNeedsReady}, ORDERED),
    Mutant(OrdersAreDone, {"rounds": c.SettledWithTheNewest}, ORDERED),
    Mutant(OrdersAreDone, {"intake": p.GoneBackUnsaid}, ORDERED),
    Mutant(SettingsAreInForce, {"rounds": c.SettingsUnheard}, ORDERED),
    Mutant(NoTransactionSpansABoundary, {"rounds": w.BoundaryForgotten}),
    Mutant(NoTransactionSpansABoundary, {"rounds": w.BoundaryOnlyAhead}, WALL_CLOCKS),
    Mutant(NoTransactionSpansABoundary, {"rounds": w.StartsBeyondItsBoundary}),
    Mutant(NoTransactionSpansABoundary, {"rounds": w.EdgeForgotten}),
    Mutant(ScheduledTimesAreKept, {"rounds": w.ScheduleUnheard}),
    Mutant(ScheduledTimesAreKept, {"rounds": w.MissedTimesForgotten}),
    Mutant(ScheduledTimesAreKept, {"rounds": w.TimesOfAbortsForgotten}),
    Mutant(ScheduledTimesAreKept, {"rounds": w.ClockUnheard}, ORDERED),
    Mutant(WhatIsHeardWasSaid, {"assembler": r.PartsOfTwoTransactionsMixed}, PARTS),
    Mutant(WhatIsHeardWasSaid, {"assembler": r.PartsOfTwoIncarnationsJoined}, PARTS),
    Mutant(RowsAreTheRecords, {"trust": t.MarksUnchecked}, FORGED),
    Mutant(LagReturnsToZero, {"trust": t.EpochsUnbounded}, FORGED),
    Mutant(LagReturnsToZero, {"ledger": s.AnyEpochRegistered, "trust": t.EpochsUnbounded}, FORGED),
    Mutant(StaleEpochsHaveNoEffect, {"ledger": s.FarEpochCommits, "trust": t.EpochsUnbounded}, FORGED),
    Mutant(StaleEpochsHaveNoEffect, {"ledger": s.EpochsDrivenToTheirEnd, "trust": t.EpochsUnbounded}, FORGED),
)

MUTANTS: Final = {mutant.name: mutant for mutant in _ALL}

NAMED: Final = {
    "no fence": "NoFence",
    "count instead of set": "CountInsteadOfSet",
    "ACK before commit": "AckBeforeCommit",
    "unknown taken as failed": "UnknownTakenAsFailed",
    "unknown taken as committed": "UnknownTakenAsCommitted",
    "late WRITE_STATUS accepted": "LateWriteStatusAccepted",
    "offsets from the group": "OffsetsFromTheGroup",
    "range off by one": "RangeOffByOne",
    "gap taken as loss": "GapTakenAsLoss",
    "LEAVE ignored": "LeaveIgnored",
    "abort without rewind": "AbortWithoutRewind",
    "old claim obeyed": "OldClaimObeyed",
    "parts of a WRITE_STATUS mixed between transactions": "PartsOfTwoTransactionsMixed",
    "idle partition waited for": "IdlePartitionWaitedFor",
    "offsets map not carried over": "OffsetsNotCarriedOver",
    "files of an unlisted incarnation taken": "UnlistedIncarnationTaken",
    "parts of two incarnations joined": "PartsOfTwoIncarnationsJoined",
    "latest resolved twice": "LatestResolvedTwice",
    "rollback without proof": "RollbackWithoutProof",
    "HALT of an old run obeyed": "OldHaltObeyed",
}
"""The bugs that sinks of this kind are known for, and the mutant that has each."""
