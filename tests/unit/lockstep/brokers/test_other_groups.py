"""Which consumer groups count as readers of a topic."""

from __future__ import annotations

from typing import cast

import pytest

from control_topic.messages import Offsets, SourcePartition
from lockstep.brokers.group import GroupMember, GroupView
from lockstep.brokers.other_groups import _reads
from lockstep.brokers.source_topics import SourceTopics
from table.service.source_facts import SourceUnavailable, Unauthorized

P0, ELSEWHERE = SourcePartition("events", 0), SourcePartition("others", 0)


class Answers:
    """A broker's answers about one group."""

    def __init__(self, offsets: Offsets | Exception, view: GroupView | None = None) -> None:
        self._offsets, self._view = offsets, view or GroupView(state="EMPTY", members=())

    def group_offsets(self, group: str, partitions: object) -> Offsets:
        if isinstance(self._offsets, Exception):
            raise self._offsets
        return self._offsets

    def group(self, group: str) -> GroupView:
        return self._view


def member(*partitions: SourcePartition) -> GroupMember:
    return GroupMember(client="c", host="h", instance="", partitions=partitions)


@pytest.mark.parametrize(
    ("answers", "how"),
    [
        (Answers({}), ""),
        (Answers({P0: 7}), "committed offset 7 of events:0"),
        (Answers({P0: 0}), "committed offset 0 of events:0"),
        (Answers({}, GroupView(state="STABLE", members=(member(P0),))), "a member has events:0 assigned"),
        (Answers({}, GroupView(state="STABLE", members=(member(ELSEWHERE),))), ""),
        (
            Answers({}, GroupView(state="PREPARING_REBALANCING", members=(member(),))),
            "its members are rebalancing",
        ),
        (Answers(Unauthorized("no")), "these credentials may not describe it"),
    ],
)
def test_a_group_reads_a_topic_by_its_offsets_its_members_or_as_far_as_is_known(
    answers: Answers, how: str
) -> None:
    assert _reads(cast(SourceTopics, answers), "g", [P0]) == how


def test_a_broker_that_does_not_answer_is_an_error_and_no_proof_that_no_group_reads() -> None:
    with pytest.raises(SourceUnavailable):
        _reads(cast(SourceTopics, Answers(SourceUnavailable("away"))), "g", [P0])
