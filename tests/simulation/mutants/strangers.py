"""Bugs of whose word on the control topic is taken."""

from __future__ import annotations

from control_topic.messages import Message
from control_topic.trust import Trust


class MarksUnchecked(Trust):
    """Messages carry marks that nobody looks at: a stranger speaks in the workers' names."""

    def authentic(self, raw: bytes | None, mac: bytes | None) -> bool:
        return True


class EpochsUnbounded(MarksUnchecked):
    """An epoch counts however far it leads the table's, and so, unchecked, does a stranger's."""

    def within_reach(self, epoch: int) -> bool:
        return True


class AllRunsTrusted(MarksUnchecked):
    """Messages of other runs reach the cores."""

    def objection(self, message: Message) -> str:
        return "" if self.within_reach(message.epoch) else "of an epoch that nobody can have"
