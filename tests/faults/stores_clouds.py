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
    GOES_ON_LIMIT_S,
    LOST_S,
    REFUSED_S,
    SLOW_S,
    answered,
    behind_a_proxy,
    fails_in_the_middle_of_files,
    frozen_at_each_step,
    lost,
    outlives,
    unanswered,
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
        ("asks_for_less", SLOW_S, f"request to {storage} is answered 503", Blow.SLOW_DOWN),
        ("fails", SLOW_S, f"request to {storage} is answered 500", Blow.FAIL),
        ("refuses", REFUSED_S, f"request to {storage} is answered 403", Blow.REFUSE),
        ("breaks_off", REFUSED_S, f"connection to {storage} breaks", Blow.BREAK),
    )
    for what, seconds, fault, blow in lasting:
        yield Scenario(
            f"{name}_{what}_for_{seconds:.0f}_s",
            f"for {seconds:.0f} s every {fault}",
            ENDURED,
            answered(blow, seconds),
            GOES_ON_LIMIT_S,
        )
    yield Scenario(
        f"{name}_away_for_60_s",
        f"nobody is at the address of {storage} for {AWAY_S:.0f} s",
        ENDURED,
        partial(outlives, during=_unreachable, seconds=AWAY_S, on=behind_a_proxy),
        GOES_ON_LIMIT_S,
    )
    yield fails_in_the_middle_of_files(name)
    yield from unanswered(name)
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
    rows = (*frozen_at_each_step(name, storage), *_endured(name, storage))
    put(group, *rows, stores=stores)
