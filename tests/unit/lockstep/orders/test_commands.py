"""The commands that give orders, against a real table service; what a coordinator would say is said here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from control_topic.controls import PAUSE, RESUME, SET, STOP, WHO_CHARS_MAX, Tuning
from lockstep import cli
from lockstep.config import load
from lockstep.config.tuning import objection, tuning_of
from lockstep.driver.rundir import read_run_file, remove_run_file, write_run_file
from lockstep.errors import ConfigError, Failed
from lockstep.orders import by_page
from lockstep.orders.by_page import PageOrders
from lockstep.orders.given import OUTLIVES_MS, Orders, who
from lockstep.ui.port import WantedOrder
from table.memory.timeline import MemoryTimeline
from table.service import codec
from table.service.calls import CoordinatorReport, Order, Ordered, Result, RunMode, WorkerReport
from table.service.client import TableClient
from table.service.orders import COMMIT_LIVES_MAX_MS
from table.stubs import table_pb2 as pb
from tests.harness import await_that
from tests.unit.lockstep.test_cli import PIPELINE
from tests.unit.table.service.test_servicer import TOKEN, Driver, Topics

RUN = "run-1"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


@pytest.fixture
def driver(config: Path) -> Iterator[Driver]:
    made = Driver(MemoryTimeline(), Topics(), run=RUN)
    write_run_file("events", run=RUN, address=made.server.address, token=TOKEN)
    made.lead()
    yield made
    made.close()


@pytest.fixture
def coordinator(driver: Driver) -> Iterator[list[str]]:
    """Does what it is told, at once. Its state, which a test may change; empty: it is not there."""
    state, over = ["idle"], threading.Event()

    def report() -> None:
        while not over.wait(0.02):
            told = driver.client.report(WorkerReport(slot=0, incarnation="w0"))
            controls = getattr(told, "controls", None)
            held = CoordinatorReport(epoch=1, state=state[0], settled=controls.number if controls else 0)
            if state[0]:
                driver.client.report(WorkerReport(slot=0, incarnation="w0", coordinator=held))

    thread = threading.Thread(target=report)
    thread.start()
    yield state
    over.set()
    thread.join(10)


Tell = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def tell(config: Path, capsys: pytest.CaptureFixture[str]) -> Tell:
    """A command's exit code, its JSON or None, and what it said to people."""

    def told(name: str, *arguments: str) -> tuple[int, Any, str]:
        code = cli.run([name, "-c", str(config), *arguments, "--output", "json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return told


def test_set_sends_what_it_was_given_and_says_what_is_in_force(driver: Driver, tell: Tell) -> None:
    code, said, _ = tell("set", "transaction.interval=2s", "transaction.max_records=5", "--why", "a backlog")
    assert code == 0
    assert said == {
        "run": RUN,
        "number": 1,
        "settings": {
            "transaction.interval": 2_000,
            "transaction.write_timeout": 20_000,
            "transaction.max_records": 5,
            "transaction.max_bytes": 0,
            "transaction.schedule": "",
            "transaction.align": 0,
        },
        "lasts": "until the run ends",
    }
    (control,) = driver.said
    assert (control.settings, control.who, control.why) == (
        {"interval_ms": 2_000, "max_records": 5},
        who(),
        "a backlog",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["transaction.interval=1ms"], 2, "transaction.interval"),
        (["transaction.interval=soon"], 2, "soon"),
        (["transaction.interval=2m", "transaction.write_timeout=1m"], 2, "shorter than transaction.interval"),
        (["transaction.interval"], 2, "has no '='"),
        (["pipeline.workers=3"], 2, "pipeline.workers cannot be set while a run goes on"),
        (["transaction.write_limit=3h"], 2, "cannot be set while a run goes on; what can is transaction."),
        ([], 2, "Missing argument"),
        (["transaction.schedule=hourly"], 2, "'hourly' has not cron's five fields"),
        (["transaction.align=7h"], 2, "it does not divide a day"),
        (["transaction.zone=UTC"], 2, "transaction.zone cannot be set while a run goes on"),
        (["transaction.interval=2s", "--why", "x" * 1_001], 2, "1,001 characters"),
    ],
)
def test_what_cannot_be_set_is_refused_before_anybody_is_asked(
    driver: Driver, tell: Tell, arguments: list[str], code: int, words: str
) -> None:
    found, said, err = tell("set", *arguments)
    assert (found, said) == (code, None)
    assert words in err and "Traceback" not in err
    assert driver.said == []


def test_set_puts_a_schedule_and_an_alignment_in_force_and_takes_them_away(
    driver: Driver, tell: Tell
) -> None:
    code, said, _ = tell("set", "transaction.schedule=every  1h at :05", "transaction.align=1h")
    assert code == 0
    in_force = {name: said["settings"][name] for name in ("transaction.schedule", "transaction.align")}
    assert in_force == {"transaction.schedule": "every 1h at :05", "transaction.align": 3_600_000}
    code, said, _ = tell("set", "transaction.schedule=", "transaction.align=")
    assert (code, said["settings"]["transaction.schedule"], said["settings"]["transaction.align"]) == (
        0,
        "",
        0,
    )
    first, second = driver.said
    assert first.settings == {"schedule": "every 1h at :05", "align_ms": 3_600_000}
    assert second.settings == {"schedule": "", "align_ms": 0}


def test_a_run_that_does_not_know_a_setting_is_not_said_to_have_it(
    driver: Driver, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "tuning_to_proto", _older)
    code, said, err = tell("set", "transaction.schedule=every 1h")
    assert (code, said) == (1, None)
    assert "the run is of an older version, which cannot change transaction.schedule" in err


def _older(tuning: Tuning | None) -> pb.Tuning | None:
    """As a driver answers that does not know of schedules."""
    assert tuning is not None
    return pb.Tuning(interval_ms=tuning.interval_ms, write_timeout_ms=tuning.write_timeout_ms)


def test_commit_waits_until_it_is_done_and_names_the_instant(
    driver: Driver, coordinator: list[str], tell: Tell
) -> None:
    code, said, _ = tell("commit")
    assert (code, said["number"], said["run"]) == (0, 1, RUN)
    newest = driver.table.newest()
    assert newest is not None and said["instant"] == newest.instant
    assert said["committed"] == {"events": {"0": 3, "1": 0}}


def test_commit_that_is_not_done_in_time_fails_and_says_how_far_it_is(driver: Driver, tell: Tell) -> None:
    code, said, err = tell("commit", "--timeout", "0.3")
    assert (code, said) == (1, None)
    assert "the commit is not done after 0.3 s" in err


def test_pause_and_resume(driver: Driver, coordinator: list[str], tell: Tell) -> None:
    assert tell("pause", "--why", "maintenance")[1]["paused"] is True
    await_that("a paused run", lambda: driver.service.progress().standing.mode is RunMode.PAUSE)
    assert tell("resume")[1] == {"run": RUN, "number": 2, "paused": False}
    await_that("a run that goes on", lambda: driver.service.progress().standing.mode is RunMode.RUN)


def test_stop_waits_until_the_driver_is_gone(driver: Driver, coordinator: list[str], tell: Tell) -> None:
    file = read_run_file("events")
    assert file is not None  # of this process, which is not gone: so it waits
    code, _, err = tell("stop", "--timeout", "0.3")
    assert code == 1 and "has not ended after 0.3 s" in err
    assert driver.service.progress().standing.stopping.endswith("has stopped it")


def test_whoever_waits_for_a_run_that_ends_is_told_so(driver: Driver, tell: Tell) -> None:
    threading.Timer(0.3, lambda: driver.service.request_stop("SIGTERM")).start()
    code, _, err = tell("pause")
    assert code == 1 and "ends, and the pause is not known to be done: SIGTERM" in err
    code, _, err = tell("commit")
    assert code == 1 and "does not take the order: it ends already: SIGTERM" in err


class Answers:
    """A driver that says this, one after the other."""

    def __init__(self, *said: dict[str, Any]) -> None:
        self._said = list(said)

    def status(self) -> dict[str, Any]:
        return {"run": RUN, **self._said.pop(0)}

    def close(self) -> None:
        pass


def waited(monkeypatch: pytest.MonkeyPatch, *said: dict[str, Any]) -> Any:
    with Orders("events", wait=lambda _s: None) as orders:
        monkeypatch.setattr(orders, "_client", Answers(*said))
        return orders.settled(4, timeout_s=60.0, what="the commit")


def test_whoever_waits_for_a_commit_that_is_given_up_is_not_told_that_it_is_done(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Failed, match="the commit was given up before it was done"):
        waited(
            monkeypatch,
            {"control": {"settled": 3, "expired": [2]}},
            {"control": {"settled": 9, "expired": [2, 4]}},
        )


def test_what_was_done_before_the_run_began_to_end_is_done(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = waited(monkeypatch, {"control": {"settled": 4}, "stopping": "SIGTERM"})
    assert done["stopping"] == "SIGTERM"
    with pytest.raises(Failed, match="the commit is not known to be done: SIGTERM"):
        waited(monkeypatch, {"control": {"settled": 3}, "stopping": "SIGTERM"})


def test_an_order_to_commit_outlives_whoever_waits_for_it(
    driver: Driver, coordinator: list[str], tell: Tell
) -> None:
    assert tell("commit", "--timeout", "3600")[0] == 0
    (given,) = driver.service._ledger.orders._taken
    assert given.order.lives_ms == 3_600_000 + OUTLIVES_MS <= COMMIT_LIVES_MAX_MS


def test_an_order_from_the_page_says_who_gave_it_and_from_where(config: Path, driver: Driver) -> None:
    page = PageOrders(load(config))
    settings = {"transaction.interval": "2s", "transaction.max_bytes": "1GB"}
    wanted = WantedOrder(action=SET, settings=settings, who="Anna\nof ops", why="a backlog", host="192.0.2.7")
    assert page.give(wanted) == 1
    (control,) = driver.said
    assert control.settings == {"interval_ms": 2_000, "max_bytes": 1_000_000_000}
    assert (control.who, control.why) == ("Anna of ops, on the page, from 192.0.2.7", "a backlog")
    assert page.give(WantedOrder(action=PAUSE, host="h")) == 2
    assert driver.said[1].who == "somebody, on the page, from h"
    assert len(by_page.who(WantedOrder(action=PAUSE, who="x" * 300, host="h" * 300))) == WHO_CHARS_MAX


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "name at least one setting"),
        ({"transaction.interval": "soon"}, "transaction.interval: 'soon'"),
        ({"transaction.interval": "1ms"}, "transaction.interval: "),
        ({"transaction.max_records": "many"}, "transaction.max_records: "),
        ({"transaction.write_limit": "1h"}, "cannot be set while a run goes on"),
        ({"ui.token=x;transaction.interval": "1s"}, "cannot be set while a run goes on"),
    ],
)
def test_what_the_page_cannot_set_is_refused_in_a_sentence(
    config: Path, driver: Driver, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as told:
        PageOrders(load(config)).give(WantedOrder(action=SET, settings=settings))
    assert words in str(told.value) and "--set" not in str(told.value)
    assert driver.said == []


@pytest.mark.parametrize(("own", "meant"), [("", "run-0"), ("run-0", ""), ("run-0", RUN), (RUN, "run-0")])
def test_an_order_reaches_the_run_that_was_meant_or_none(
    config: Path, driver: Driver, own: str, meant: str
) -> None:
    """Another has taken its place since the page was loaded, or since the driver began to serve it."""
    with pytest.raises(Failed, match="the order is to run run-0, and what goes on here is run run-1"):
        PageOrders(load(config), run=own).give(WantedOrder(action=STOP, run=meant))
    assert driver.said == []
    assert PageOrders(load(config), run=RUN).give(WantedOrder(action=PAUSE, run=RUN)) == 1


def test_an_order_of_which_the_answer_is_not_known_may_have_been_taken(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = Ordered(result=Result.UNKNOWN, reason="it broke down")
    monkeypatch.setattr(TableClient, "control", lambda _client, _order: unknown)
    with Orders("events") as orders, pytest.raises(Failed, match="may have taken the order: it broke down"):
        orders.give(Order(action=PAUSE))


def test_a_pause_that_somebody_else_has_ended_is_not_said_to_be_one(
    driver: Driver, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Orders, "settled", lambda *_a, **_k: {"control": {"paused": None}})
    code, said, err = tell("pause")
    assert (code, said) == (1, None) and "was resumed by somebody else" in err


def test_the_page_says_as_the_commands_do_that_no_run_is_here(config: Path) -> None:
    with pytest.raises(Failed, match="no run of pipeline events has left its address"):
        PageOrders(load(config)).give(WantedOrder(action=PAUSE))


@pytest.mark.parametrize("name", ["commit", "pause", "resume", "stop"])
def test_where_no_run_has_left_its_address_the_command_says_where_to_go(
    config: Path, tell: Tell, name: str
) -> None:
    code, _, err = tell(name)
    assert code == 1 and "no run of pipeline events has left its address on this machine" in err


def test_a_driver_that_is_gone_and_left_its_address_is_no_trace(config: Path, tell: Tell) -> None:
    write_run_file("events", run=RUN, address="127.0.0.1:1", token=TOKEN)
    try:
        code, _, err = tell("resume")
    finally:
        remove_run_file("events", run=RUN)
    assert code == 1 and "no answer from run run-1, which may have taken the order" in err


def test_a_driver_of_an_older_version_is_told_from_one_that_does_not_answer(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("table.stubs.table_pb2_grpc.TableServiceStub.__init__", _without_control)
    with Orders("events") as orders, pytest.raises(Failed, match="of an older version"):
        orders.give(Order(action=RESUME))


def _without_control(stub: Any, channel: Any) -> None:
    stub.Control = channel.unary_unary(
        "/lockstep.table.v1.TableService/Nothing",
        request_serializer=pb.ControlRequest.SerializeToString,
        response_deserializer=pb.ControlReply.FromString,
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"interval_ms": 100}, ""),
        ({"interval_ms": 99}, "transaction.interval: "),
        ({"interval_ms": 10**15}, "transaction.interval: "),
        ({"interval_ms": 61_000}, "transaction.write_timeout: 1m is shorter than transaction.interval"),
        ({"interval_ms": 61_000, "write_timeout_ms": 61_000}, ""),
        ({"write_timeout_ms": 601_000}, "transaction.write_limit"),
        ({"max_records": 10**18 + 1}, "transaction.max_records: "),
        ({"max_bytes": 0}, ""),
        ({"max_bytes": 2**63 - 1}, "transaction.max_bytes: "),
    ],
)
def test_settings_have_the_limits_and_the_relations_that_they_have_in_the_file(
    config: Path, changes: dict[str, int], words: str
) -> None:
    loaded = load(config, with_schema=False)
    said = objection(loaded, replace(tuning_of(loaded), **changes))
    assert said.startswith(words) if words else said == ""
