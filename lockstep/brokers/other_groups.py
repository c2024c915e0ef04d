"""Other consumer groups that read a topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from confluent_kafka.admin import AdminClient, ListConsumerGroupsResult

from control_topic.messages import SourcePartition
from lockstep.brokers.questions import Questions, TryAgain, gather
from lockstep.brokers.source_topics import SourceTopics
from lockstep.errors import Failed
from table.service.source_facts import Unauthorized

TIMEOUT_S = 30.0
GROUPS_MAX = 10_000


def other_groups(
    kafka: Mapping[str, str], topics: Sequence[str], *, without: Collection[str] = ()
) -> dict[str, str]:
    """Return the consumer groups that read `topics` or may read them, each with how that shows.

    A group reads a topic if it has committed an offset of it, or if a member has a source partition of it
    assigned. A group that these credentials may not describe may read it. The broker does not list groups
    that they may not see, and knows no reader that commits no offsets and is no member.

    `without`: groups that are not asked about. Raises `SourceTopicsError`, and `Failed` for more than
    `GROUPS_MAX` groups.
    """
    questions = Questions(kafka, timeout_s=TIMEOUT_S)
    listed = questions.ask("list the consumer groups", partial(_listed, questions.admin))
    groups = sorted(listed - set(without))
    if len(groups) > GROUPS_MAX:
        raise Failed(
            f"{questions.servers} has {len(groups):,} consumer groups, more than the {GROUPS_MAX:,} that are "
            "asked whether they read the source topics. Use credentials that may describe only the groups "
            "of these topics."
        )
    source = SourceTopics(kafka, topics)
    partitions = source.facts().partitions
    found: dict[str, str] = {}
    for group in groups:
        if how := _reads(source, group, partitions):
            found[group] = how
    return found


def _listed(admin: AdminClient, timeout_s: float) -> set[str]:
    """Return the names of all groups. Every broker must answer: each knows only its own groups."""
    answer = admin.list_consumer_groups(request_timeout=timeout_s)
    listed: ListConsumerGroupsResult = gather({"": answer}, timeout_s)[""]
    if listed.errors:
        raise TryAgain(str(listed.errors[0]))
    return {one.group_id for one in listed.valid or ()}


def _reads(source: SourceTopics, group: str, partitions: Sequence[SourcePartition]) -> str:
    """Return how it shows that a group reads one of `partitions`; empty where nothing shows it."""
    try:
        offsets = source.group_offsets(group, partitions)
        if offsets:
            first = min(offsets)
            return f"committed offset {offsets[first]} of {first}"
        view = source.group(group)
        held = {one for member in view.members for one in member.partitions}.intersection(partitions)
        if held:
            return f"a member has {min(held)} assigned"
        return "its members are rebalancing" if view.members and view.rebalancing else ""
    except Unauthorized:
        return "these credentials may not describe it"
