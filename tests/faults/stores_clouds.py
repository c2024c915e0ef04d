"""What Google's and Azure's storage do to those whose table is there, as far as what stands for them on one
machine can be made to: it stands still, is away, asks for less, fails, refuses, and does not say that it has
done what it was asked for. Neither can be killed: they keep in memory what they were given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.faults.commits import wall_ms
from tests.faults.scenario import ON_AZURE, ON_GOOGLE, Notes, Scenario, put
from tests.faults.stage import Stage
from tests.faults.stores import (
    AWAY_S,
    ENDURED,
    FAILS_S,
    GOES_ON_LIMIT_S,
    LARGE_FILES,
    LOST_S,
    REFUSED_S,
    SLOW_S,
    answered,
    behind_a_proxy,
    frozen_at_each_step,
    lost,
    outlives,
    parts_fail,
)
from tests.s3_proxy import Blow, Request

EVERY = 3


@contextmanager
def _unreachable(stage: Stage) -> Iterator[Notes]:
    assert stage.proxy is not None
    with stage.proxy.away():
        began_ms = wall_ms()
        yield {}
        assert len(stage.commits_after(began_ms)) <= 1, "somebody has reached it all the same"


def _endured(name: str, storage: str) -> Iterator[Scenario]:
    """`storage`: whose, in words."""
    lasting = (
        (
            "asks_for_less_for_60_s",
            f"for {SLOW_S:.0f} s every request to {storage} is answered 503",
            Blow.SLOW_DOWN,
        ),
        ("fails_for_60_s", f"for {SLOW_S:.0f} s every request to {storage} is answered 500", Blow.FAIL),
        (
            "refuses_for_30_s",
            f"for {REFUSED_S:.0f} s every request to {storage} is answered 403",
            Blow.REFUSE,
        ),
        ("breaks_off_for_30_s", f"for {REFUSED_S:.0f} s every connection to {storage} breaks", Blow.BREAK),
    )
    for what, fault, blow in lasting:
        seconds = SLOW_S if "60" in what else REFUSED_S
        yield Scenario(f"{name}_{what}", fault, ENDURED, answered(blow, seconds), GOES_ON_LIMIT_S)
    yield Scenario(
        f"{name}_away_for_60_s",
        f"nobody is at the address of {storage} for {AWAY_S:.0f} s",
        ENDURED,
        partial(outlives, during=_unreachable, seconds=AWAY_S, on=behind_a_proxy),
        GOES_ON_LIMIT_S,
    )
    yield Scenario(
        f"{name}_fails_in_the_middle_of_files",
        f"for {FAILS_S:.0f} s parts of files that are uploaded in parts are answered 500",
        "workers whose files cannot be written are replaced, which is waited out as the storage's fault; "
        "nothing half-written is ever read, and no part is left behind",
        parts_fail,
        GOES_ON_LIMIT_S,
        settings=LARGE_FILES,
    )


def _unanswered(name: str) -> Iterator[Scenario]:
    """What was asked for is carried out, and nobody is told."""
    yield Scenario(
        f"{name}_answers_lost_for_the_timeline",
        f"for {LOST_S:.0f} s the first put of each file of the timeline is carried out, and its answer lost",
        "what has landed is found to have landed; no instant is completed twice, nor taken for lost",
        lost("/.hoodie/timeline/"),
        GOES_ON_LIMIT_S,
    )
    yield Scenario(
        f"{name}_answers_lost_for_what_decides",
        f"for {LOST_S:.0f} s the answer is lost to the put that decides whether an instant is completed",
        "whoever has decided is found by the mark of the put, and commits go on",
        lost("/.hoodie/.lockstep/decided/"),
        GOES_ON_LIMIT_S,
    )
    yield Scenario(
        f"{name}_answers_lost_for_the_table_lock",
        f"for {LOST_S:.0f} s every third answer to a put of the table lock is lost",
        "the lock itself says whose it is, and commits go on",
        lost("/.hoodie/.locks/", every=EVERY),
        GOES_ON_LIMIT_S,
    )
    yield Scenario(
        f"{name}_every_third_answer_lost",
        f"for {LOST_S:.0f} s every third answer about each object is lost, whatever was asked",
        "what was carried out is found to have been, and commits go on",
        lost("", every=EVERY, requests=tuple(Request)),
        GOES_ON_LIMIT_S,
    )


for group, name, storage, stores in (
    ("Google", "gs", "Google's storage", ON_GOOGLE),
    ("Azure", "azure", "Azure's storage", ON_AZURE),
):
    rows = (*frozen_at_each_step(name, storage), *_endured(name, storage), *_unanswered(name))
    put(group, *rows, stores=stores)
