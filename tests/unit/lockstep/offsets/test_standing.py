"""Every verdict of `lockstep offsets`, and what a change of offsets would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from rich.console import Console

from control_topic.messages import SourcePartition, Witness
from lockstep.brokers.group import GroupMember
from lockstep.errors import ConfigError
from lockstep.offsets.plan import (
    ALIVE_MS,
    OffsetsPlan,
    Wanted,
    heard_lately,
    parse_assignments,
    plan_adopt,
    plan_begin,
    plan_set,
    signs_of_life,
)
from lockstep.offsets.standing import OffsetRow, SourceView, advice, compare, to_json, to_text
from lockstep.verify.chain import follow
from table.hudi.reader.timeline import PendingInstant
from table.state import TableState, decode, encode

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
Q0 = SourcePartition("orders", 0)
STATE = TableState(
    pipeline="p",
    run="r",
    epoch=7,
    transaction="t",
    offsets={P0: 50, P1: 60},
    cluster="K",
    topics={"events": "A"},
    instant="100",
)
VIEW = SourceView(
    cluster="K",
    topics={"events": "A"},
    partitions=(P0, P1),
    earliest={P0: 0, P1: 0},
    end={P0: 50, P1: 60},
    group={P0: 50, P1: 60},
)


def only(state: TableState | None, view: SourceView, partition: SourcePartition = P0) -> OffsetRow:
    (row,) = [r for r in compare(state, view) if (r.topic, r.partition) == partition]
    return row


@pytest.mark.parametrize(
    ("state", "view", "verdict", "lag"),
    [
        (STATE, VIEW, "ok", 0),
        (STATE, replace(VIEW, end={P0: 80, P1: 60}), "behind", 30),
        (
            STATE,
            replace(VIEW, earliest={P0: 55, P1: 0}, end={P0: 80, P1: 60}),
            "data lost: retention removed [50, 55)",
            30,
        ),
        (STATE, replace(VIEW, end={P0: 49, P1: 60}), "beyond the end: topic recreated?", 0),
        (STATE, replace(VIEW, topics={"events": "B"}), "other topic id", 0),
        (STATE, replace(VIEW, cluster="L"), "other cluster", 0),
        (None, replace(VIEW, group={}), "no offset yet", None),
        (replace(STATE, offsets={P1: 60}), replace(VIEW, group={}), "no offset yet", None),
        (STATE, replace(VIEW, group={P0: 51}), "group ahead of the table (S8!)", 0),
        (None, replace(VIEW, group={P0: 51}), "group ahead of the table (S8!)", None),
        (STATE, replace(VIEW, group={}), "ok", 0),
        (
            STATE,
            replace(VIEW, partitions=(P1,), earliest={P1: 0}, end={P1: 60}),
            "gone from the broker: topic recreated?",
            None,
        ),
    ],
)
def test_every_verdict(state: TableState | None, view: SourceView, verdict: str, lag: int | None) -> None:
    row = only(state, view)
    assert (row.verdict, row.lag) == (verdict, lag)


def test_a_topic_that_is_no_longer_configured_is_told_and_no_trouble() -> None:
    row = only(replace(STATE, offsets={**STATE.offsets, Q0: 5}), VIEW, Q0)
    assert (row.verdict, row.committed, row.end, row.fine) == ("not configured any more", 5, None, True)


def test_an_unknown_topic_id_or_cluster_proves_nothing() -> None:
    assert only(replace(STATE, topics={}, cluster=""), replace(VIEW, topics={"events": "B"})).verdict == "ok"


def test_the_json_form_is_a_list_with_the_contracts_keys() -> None:
    document = to_json(compare(STATE, VIEW))
    keys = {"topic", "partition", "committed", "earliest", "end", "lag", "group", "verdict", "undecided"}
    assert [set(row) for row in document] == [keys, keys]


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (replace(VIEW, cluster="L"), "--adopt"),
        (replace(VIEW, end={P0: 1, P1: 60}), "--set events:0=earliest"),
        (replace(VIEW, earliest={P0: 55, P1: 0}, end={P0: 80, P1: 60}), "source.on_data_loss"),
        (replace(VIEW, group={P0: 999}), "who else commits"),
    ],
)
def test_every_trouble_comes_with_what_to_do(view: SourceView, told: str) -> None:
    assert told in " ".join(advice(compare(STATE, view)))
    assert shown(compare(STATE, view)).startswith(
        ("1 of 2 source partitions cannot go on", "2 of 2 source partitions cannot go on")
    )


def test_what_waits_for_producers_is_named_and_is_lag_but_no_trouble() -> None:
    """As Kafka's own tool counts lag: up to the end of the log."""
    rows = compare(STATE, replace(VIEW, written={P0: 1_050, P1: 60}))
    assert (rows[0].undecided, rows[0].lag, rows[0].readable_lag) == (1_000, 1_000, 0)
    assert (rows[0].verdict, rows[0].fine) == ("open producer transaction", True)
    assert (rows[1].undecided, rows[1].lag, rows[1].verdict) == (0, 0, "ok")
    assert "1,000 offsets wait for their producers, who have transactions open: events:0 from 50." in shown(
        rows
    )
    assert advice(rows) == []
    assert "wait for their producers" not in shown(compare(STATE, VIEW))


def test_no_trouble_needs_no_advice() -> None:
    assert advice(compare(STATE, replace(VIEW, end={P0: 80, P1: 60}))) == []
    assert "30 offsets behind" in shown(compare(STATE, replace(VIEW, end={P0: 80, P1: 60})))


def shown(rows: list[OffsetRow]) -> str:
    with open("/dev/null", "w") as nowhere:
        console = Console(width=200, record=True, file=nowhere)
        console.print(to_text(rows, STATE))
        return console.export_text()


# --- assignments ---------------------------------------------------------------------------------------


def test_assignments_take_numbers_words_and_all_partitions() -> None:
    assert parse_assignments(["events:0=12", "events:1=latest"], [P0, P1]) == {P0: 12, P1: "latest"}
    assert parse_assignments(["events:*=earliest"], [P0, P1, Q0]) == {P0: "earliest", P1: "earliest"}
    assert parse_assignments(["events:0=12", "events:*=latest"], [P0, P1]) == {P0: "latest", P1: "latest"}


@pytest.mark.parametrize(
    "text", ["events=1", "events:0", "events:0=-1", "events:0=soon", "events:x=1", "events:9=1", "others:0=1"]
)
def test_an_assignment_that_means_nothing_is_refused_with_itself(text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("*", r"\*")):
        parse_assignments([text], [P0, P1])


def test_one_partition_set_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than once"):
        parse_assignments(["events:0=1", "events:0=2"], [P0])


# --- plans ---------------------------------------------------------------------------------------------

LONG = replace(VIEW, end={P0: 100, P1: 100}, earliest={P0: 10, P1: 10})


def setting(wanted: Mapping[SourcePartition, Wanted], state: TableState = STATE) -> OffsetsPlan:
    return plan_set(state, wanted, LONG, operator="ann", reason="poison")


def test_going_forward_skips_and_going_back_reads_again() -> None:
    plan = setting({P0: 70, P1: 40})
    assert [(c.partition, c.before, c.after, c.skipped, c.reread) for c in plan.changes] == [
        (P0, 50, 70, 20, 0),
        (P1, 60, 40, 0, 20),
    ]
    assert "20 records are skipped" in plan.changes[0].effect
    assert "20 records are read AGAIN" in plan.changes[1].effect


def test_the_planned_state_is_a_higher_epoch_with_the_whole_map_and_who_did_it() -> None:
    plan = setting({P0: "latest", P1: "earliest"})
    stored = decode(encode(plan.state))
    assert stored is not None
    assert stored.offsets == {P0: 100, P1: 10}
    assert (stored.kind, stored.operator, stored.reason, stored.epoch) == ("operator", "ann", "poison", 8)
    assert (stored.cluster, dict(stored.topics), stored.ranges) == ("K", {"events": "A"}, ())
    assert plan.expected == STATE.offsets


def test_what_is_set_to_what_it_is_is_no_change() -> None:
    assert setting({P0: 50}).changes == ()


@pytest.mark.parametrize("offset", [9, 101])
def test_an_offset_outside_of_the_log_is_refused(offset: int) -> None:
    with pytest.raises(ConfigError, match=f"events:0={offset}: the log holds 10 to 100"):
        setting({P0: offset})


def test_setting_alone_does_not_accept_another_topic() -> None:
    for state in (replace(STATE, topics={"events": "Z"}), replace(STATE, cluster="Z")):
        with pytest.raises(ConfigError, match="--adopt"):
            setting({P0: 70}, state)


def test_of_what_an_operator_has_looked_at_no_record_is_looked_for_and_of_all_else_still() -> None:
    """Set where it stands already, a log that lost its end is taken as it is."""
    witnesses = {p: Witness(partition=p, offset=9, fingerprint=1) for p in (P0, P1)}
    state = replace(STATE, witnesses=witnesses)
    plan = setting({P0: 50}, state)
    assert plan.state.witnesses == {P1: witnesses[P1]}
    assert [(c.partition, c.before, c.after, c.trusted) for c in plan.changes] == [(P0, 50, 50, True)]
    assert "the log before it is taken for the one that was read" in plan.changes[0].effect
    assert setting({P0: 50}).changes == ()
    assert setting({P0: 70}, state).state.witnesses == {P1: witnesses[P1]}


def test_of_a_topic_or_a_cluster_that_is_adopted_no_record_is_looked_for() -> None:
    state = replace(STATE, witnesses={p: Witness(partition=p, offset=9, fingerprint=1) for p in (P0, P1)})
    anew = plan_adopt(state, {}, replace(LONG, topics={"events": "B"}), operator="ann", reason="anew")
    assert anew.state.witnesses == {}
    moved = plan_adopt(state, {}, replace(LONG, cluster="L"), operator="ann", reason="moved")
    assert moved.state.witnesses == {}


def test_adopting_a_recreated_topic_begins_at_its_earliest_and_leaves_the_others() -> None:
    view = SourceView(
        cluster="K",
        topics={"events": "B", "orders": "O"},
        partitions=(P0, Q0),
        earliest={P0: 3, Q0: 0},
        end={P0: 9, Q0: 90},
    )
    state = replace(STATE, offsets={P0: 50, P1: 60, Q0: 33}, topics={"events": "A", "orders": "O"})
    plan = plan_adopt(state, {}, view, operator="ann", reason="made anew")
    assert plan.state.offsets == {P0: 3, Q0: 33}
    assert plan.state.topics == {"events": "B", "orders": "O"}
    assert [(c.partition, c.after, c.anew) for c in plan.changes] == [(P0, 3, True), (P1, None, False)]
    assert "dropped" in plan.changes[1].effect


def test_adopting_another_cluster_begins_everything_anew_unless_it_is_set() -> None:
    view = replace(LONG, cluster="L", topics={"events": "B"})
    plan = plan_adopt(STATE, {P1: "latest"}, view, operator="ann", reason="moved")
    assert plan.state.offsets == {P0: 10, P1: 100}
    assert plan.state.cluster == "L"


def test_there_is_nothing_to_adopt_where_nothing_changed() -> None:
    with pytest.raises(ConfigError, match="nothing to adopt"):
        plan_adopt(STATE, {}, LONG, operator="ann", reason="why")


def test_what_a_plan_leaves_is_a_chain_that_verify_follows() -> None:
    genesis = replace(STATE, kind="genesis", transaction="g", instant="099")
    for plan in (setting({P0: 70, P1: 40}), setting({P0: "earliest"})):
        assert follow([genesis, replace(plan.state, instant="101")]).broken == []


# --- signs of life -------------------------------------------------------------------------------------

OPEN = PendingInstant(requested="101", action="commit", phase="inflight", owner={"pipeline": "p"})


def test_nobody_is_alive_where_nobody_was_heard_lately() -> None:
    assert not signs_of_life(
        members=[], driver_answers=False, pending=[(OPEN, 60_000)], write_timeout_ms=60_000
    )
    assert not signs_of_life(members=[], driver_answers=False, pending=[], write_timeout_ms=60_000)


def test_what_the_control_topic_alone_says_is_told_and_keeps_nobody_from_anything() -> None:
    assert "5.0 s ago" in heard_lately(5_000)
    assert not heard_lately(None)
    assert not heard_lately(ALIVE_MS)


def test_every_sign_of_life_is_named() -> None:
    member = GroupMember(client="c", host="h", instance="p-0", partitions=(P0,))
    signs = signs_of_life(
        members=[member], driver_answers=True, pending=[(OPEN, 1_000)], write_timeout_ms=60_000
    )
    assert len(signs) == 3
    for part, sign in zip(("p-0", "driver answers", "instant 101"), signs, strict=True):
        assert part in sign


def test_a_pipeline_without_commits_begins_on_purpose_where_all_source_partitions_are_set() -> None:
    with pytest.raises(ConfigError, match=r"without one are events:1"):
        plan_begin("p", {P0: "earliest"}, LONG, operator="ann", reason="a new table")
    plan = plan_begin("p", {P0: "earliest", P1: "latest"}, LONG, operator="ann", reason="a new table")
    assert plan.expected == {} and plan.state.kind == "genesis" and plan.state.epoch == 1
    assert plan.state.offsets == {P0: LONG.earliest[P0], P1: LONG.end[P1]}
    assert {one.effect for one in plan.changes} == {"begins here, whatever of it the table holds already"}
