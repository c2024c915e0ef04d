"""The picture of the demo: of which moment it is, and that a page can show it as it is."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lockstep.demo.kills import Kill
from lockstep.demo.proof import Counted, Counts
from lockstep.demo.report import DemoReport, Ran
from lockstep.demo.view import Scene
from tests.heard_topic import P0, T1, T2, Topic, announced
from tools.demo_picture import COMMAND, PICTURE, Camera, is_the_moment

T3, T4 = "3" * 32, "4" * 32


def scene(topic: Topic) -> Scene:
    return Scene(title="100 events", known=topic.known, began_ms=0, wanted={P0: 100}, sent={P0: 60})


def committed(topic: Topic, transaction: str, start: int, *, epoch: int) -> None:
    topic.opened(transaction, {P0: start}, epoch=epoch)
    topic.reported(transaction, P0, start, start + 10)
    topic.acknowledged(transaction, {P0: start + 10}, epoch=epoch)


def report(*, verified: bool = True) -> DemoReport:
    counts = (Counts(reader="Spark SQL", rows=10, offsets=10, events=10),)
    verdict = {"exact": verified, "rows": 10, "missing": 0, "duplicated": 1 - verified, "unexpected": 0}
    ran = Ran(
        started_as="demo",
        records=10,
        produced_bytes=1_600,
        running_ms=2_000,
        total_ms=9_000,
        commits=(),
        aborts=(),
        epoch=2,
        kills=(Kill(victim="a worker", coordinator=False, at_fraction=0.2),),
        kept=None,
        port=9092,
        lake_port=0,
    )
    return DemoReport(ran=ran, finding=Counted(records=10, counts=counts, files=1, verdict=verdict))


@pytest.fixture
def at_the_moment() -> Topic:
    topic = announced()
    committed(topic, T1, 0, epoch=1)
    for number, transaction in enumerate((T2, T3), 1):
        assert not is_the_moment(scene(topic))
        committed(topic, transaction, 10 * number, epoch=2)
    assert not is_the_moment(scene(topic)), "no transaction is open"
    topic.opened(T4, {P0: 30}, epoch=2)
    return topic


def test_the_moment_is_when_commits_have_gone_on_under_a_second_coordinator(at_the_moment: Topic) -> None:
    assert is_the_moment(scene(at_the_moment))


def test_the_picture_has_the_moment_what_was_said_before_it_and_the_verdict(at_the_moment: Topic) -> None:
    camera = Camera()
    camera.say("SIGKILL for worker-0", style="bold red")
    camera.show(scene(at_the_moment))
    camera.say("said later")
    drawn = words(camera.picture(report()))
    for part in (
        COMMAND,
        "100 events",
        T4[:8],
        "writing",
        "SIGKILL for worker-0",
        "Exact: 10 records",
        "9.0 s",
    ):
        assert part in drawn
    assert "said later" not in drawn


@pytest.mark.parametrize(("came", "exact"), [(False, True), (True, False)])
def test_a_run_that_is_not_exact_or_never_came_to_the_moment_gives_no_picture(
    at_the_moment: Topic, came: bool, exact: bool
) -> None:
    camera = Camera()
    if came:
        camera.show(scene(at_the_moment))
    with pytest.raises(ValueError, match="no picture"):
        camera.picture(report(verified=exact))


def test_the_picture_that_the_readme_shows_is_of_an_exact_run_and_loads_nothing_from_elsewhere() -> None:
    kept = PICTURE.read_text(encoding="utf-8")
    assert "Exact: 1,000,000 records in, every one in the table once." in words(kept)
    elsewhere = kept.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in elsewhere and "url(#" in elsewhere and "url(h" not in elsewhere


def words(svg: str) -> str:
    text = "\n".join(one.text or "" for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text"))
    return text.replace("\xa0", " ")
