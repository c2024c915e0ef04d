"""The timeline reader under hypothesis: damaged files are read, or refused in a sentence."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings

from tests.fuzz import strategies, timeline

TIMELINES, STATES = timeline.TARGETS
COMMIT = next(name for name in timeline.sound() if name.endswith(".commit"))


def state(**changes: str) -> list[dict[str, str]]:
    return [{**timeline.encode(timeline.STATE), **{f"lockstep.{key}": text for key, text in changes.items()}}]


@settings(strategies.PROFILE, max_examples=150)
@given(strategies.cases(TIMELINES))
@example([{COMMIT: b""}])
@example([{COMMIT: timeline.sound()[COMMIT][:-30] + b"x" * 30}])
@example([{COMMIT: timeline.sound()[COMMIT].replace(b'"record"', b'"secord"', 1)}])
@example([{"timeline/history/_version_": b"\xff"}])
@example([{"timeline/history/manifest_1": b'{"files": [{"fileName": "x"}]}'}])
@example([{"timeline/99999999999999999_99999999999999999.commit": timeline.sound()[COMMIT]}])
@example([{"hoodie.properties": timeline.sound()["hoodie.properties"] + b"hoodie.timeline.path=\\u0000\n"}])
def test_a_damaged_timeline_is_read_or_refused_in_a_sentence(case: Any) -> None:
    TIMELINES.check(case)


@settings(strategies.PROFILE, max_examples=300)
@given(strategies.cases(STATES))
@example(state(offsets='{"events": {"0": -1}}'))
@example(state(offsets='{"events": {"0": 1.5}}'))
@example(state(offsets="[" * 5_000))
@example(state(topics="[]"))
@example(state(ranges='[["events", 0, 0.0, 5, 1]]'))
@example(state(reject_count="-1"))
def test_a_commits_state_is_read_whole_or_refused(case: Any) -> None:
    STATES.check(case)
