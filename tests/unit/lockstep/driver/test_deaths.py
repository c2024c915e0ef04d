"""How many workers may die before the run ends, and which deaths are counted together."""

from __future__ import annotations

from lockstep.driver.deaths import PAUSED_QUIET_S, Deaths


def test_more_deaths_than_are_borne_without_a_commit_between_them_end_the_run() -> None:
    deaths = Deaths(2)
    assert [deaths.add(0.0, "killed", paused=False) for _ in range(2)] == ["", ""]
    deaths.committed()
    assert [deaths.add(9_999.0, "killed", paused=False) for _ in range(2)] == ["", ""]
    assert deaths.add(99_999.0, "out of memory", paused=False).startswith(
        "3 workers died without a commit between them; the last: out of memory. "
    )


def test_losses_far_from_each_other_do_not_end_a_pause_and_a_crash_loop_does() -> None:
    deaths = Deaths(2)
    for number in range(10):
        assert not deaths.add(number * (PAUSED_QUIET_S + 1), "preempted", paused=True)
    now_s = 10 * (PAUSED_QUIET_S + 1)
    said = [deaths.add(now_s + number, "killed", paused=True) for number in range(3)]
    assert said[:2] == ["", ""] and said[2]
