"""What the demo of change data says of the table, and how it looks in a terminal 100 columns wide."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from lockstep.commands.demo import command
from lockstep.config import load
from lockstep.demo.cdc import EVENTS_MIN, ChangeDataPlay
from lockstep.demo.cdc_proof import Compared, FollowedOrder, changes_of, differences, is_part_of
from lockstep.demo.kills import one_kill
from lockstep.demo.pipeline import write_config
from lockstep.demo.report import DemoReport, Ran
from lockstep.demo.shop import Model, Order, Shop, Version

SHOP = Shop(orders=100, changes=300)
WIDTH = 100


@pytest.fixture(scope="module")
def model() -> Model:
    return SHOP.model(4)


def rows_of(model: Model) -> dict[int, Version]:
    return dict(model.rows)


def seen(orders: Sequence[Order | None]) -> list[FollowedOrder]:
    return [FollowedOrder(instant=f"2026010508{n:02d}00000", order=order) for n, order in enumerate(orders)]


def compared(
    model: Model, rows: Mapping[int, Version], states: Sequence[FollowedOrder] | None = None
) -> Compared:
    return Compared(
        model=model,
        rows=len(rows),
        differences=differences(model.rows, rows.values()),
        states=seen(model.followed) if states is None else states,
        compactions=2,
    )


def told(finding: Compared, *, width: int = WIDTH) -> str:
    ran = Ran(
        started_as="demo --cdc",
        records=440_463,
        produced_bytes=243_504_366,
        running_ms=41_000,
        total_ms=95_000,
        commits=(),
        aborts=(),
        epoch=2,
        kills=one_kill(),
        kept=None,
        port=9092,
        lake_port=0,
    )
    console = Console(file=io.StringIO(), width=width)
    console.print(DemoReport(ran=ran, finding=finding).to_text())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_rows_that_are_as_the_model_says_are_equal_and_the_history_is_shown(model: Model) -> None:
    finding = compared(model, rows_of(model))
    assert finding.exact
    text = told(finding)
    assert f"Equal: {len(model.rows)} rows" in text and "NOT" not in text
    for expected in ("2 completed while", "returned", "deleted", "TIMESTAMP AS OF"):
        assert expected in text
    assert json.loads(json.dumps(finding.to_json()))["history"][0]["order"]["status"] == "placed"


def test_each_kind_of_difference_is_found_and_its_rows_are_named(model: Model) -> None:
    rows = rows_of(model)
    one, other, third = sorted(set(rows) - {42})[:3]
    del rows[one]
    rows[other] = rows[other]._replace(order=rows[other].order._replace(amount="0.01"))
    rows[999_999] = Version(rows[third].order._replace(id=999_999), 0)
    found = differences(model.rows, [*rows.values(), rows[third]])
    assert (found.missing, found.different) == ([one], [other])
    assert (found.unexpected, found.doubled) == ([999_999], [third])
    text = told(compared(model, rows))
    assert "NOT equal" in text
    for expected in (f"missing: orders {one}", f"different: orders {other}", "unexpected: orders 999999"):
        assert expected in text


def test_a_row_with_the_right_values_and_an_older_position_is_different(model: Model) -> None:
    rows = rows_of(model)
    changed = next(number for number, row in rows.items() if row.position)
    rows[changed] = rows[changed]._replace(position=0)
    assert differences(model.rows, rows.values()).different == [changed]


def test_a_history_may_skip_states_between_commits_but_tells_them_in_order(model: Model) -> None:
    happened = model.followed
    assert is_part_of(happened[::2], happened)
    assert not is_part_of(happened[:-1], happened), "the last state is not there"
    assert not is_part_of([*happened[1:3][::-1], happened[-1]], happened)
    assert not is_part_of([], happened)
    finding = compared(model, rows_of(model), seen([happened[2], happened[1], happened[-1]]))
    assert not finding.exact
    assert "not what became of it" in told(finding)


def test_states_that_a_commit_left_alone_and_those_before_the_row_came_are_not_shown(model: Model) -> None:
    first, second = model.followed[:2]
    states = seen([None, first, first, second, None, None, first])
    assert [one.order for one in changes_of(states)] == [first, second, None, first]
    assert changes_of(states)[0].instant == states[1].instant


def test_nothing_that_it_says_is_folded_in_a_hundred_columns(model: Model) -> None:
    lines = told(compared(model, rows_of(model)), width=1_000).splitlines()
    assert len(lines) > 20
    assert [line for line in lines if len(line.rstrip()) > WIDTH] == []


def test_its_configuration_is_one_that_lockstep_takes(tmp_path: Path) -> None:
    play = ChangeDataPlay(400)
    sections = play.sections(tmp_path.as_uri())
    path = write_config(tmp_path, "127.0.0.1:1", "2s", topic=play.topic, sections=sections)
    config = load(path)
    assert (config.record.envelope, config.table.kind, config.table.key) == ("debezium", "upsert", ("id",))


def test_too_few_events_for_the_order_that_is_followed_are_refused_before_anything_starts() -> None:
    refused = CliRunner().invoke(command, ["--cdc", "--records", str(EVENTS_MIN - 1)])
    assert refused.exit_code == 2
    assert str(EVENTS_MIN) in refused.output
