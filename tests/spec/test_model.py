"""The model of the protocol holds, finds bugs, and its runner takes nothing for a result that is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import spec
from tools.spec_worlds import BUGS, WHAT_IFS, WORLDS, World

QUICK = ("EVERYBODY_OWNED",)


@pytest.fixture(scope="module")
def tool() -> Path:
    try:
        return spec.spin()
    except spec.NotToBeHad as error:
        pytest.skip(str(error))


def test_a_small_world_is_explored_completely_and_has_no_error(tool: Path) -> None:
    found = spec.search(tool, World(name="test_sound", says="", defines=QUICK))
    assert (found.problem, found.violated) == ("", ())
    assert found.states > 100_000


@pytest.mark.parametrize(
    ("name", "violated"),
    [("ack_before_commit", "S7"), ("rollback_without_proof", "S11"), ("begun_while_paused", "O1")],
)
def test_a_bug_that_is_compiled_in_is_found_and_its_way_is_told(tool: Path, name: str, violated: str) -> None:
    bug = next(one for one in BUGS if one.name == name)
    found = spec.search(tool, World(name=f"test_{name}", says="", defines=bug.defines, has_error=True))
    assert found.as_expected, found.problem
    assert violated in found.violated
    assert "coordinator 0 claims epoch 1" in found.trail
    assert any(line.startswith("VIOLATED") for line in found.trail)


def test_only_an_error_that_is_looked_for_is_as_expected() -> None:
    bug = World(name="bug", says="", has_error=True)
    sound = World(name="sound", says="")
    assert spec.Found(world=bug, violated=("S1",)).as_expected
    assert spec.Found(world=sound).as_expected
    assert not spec.Found(world=bug).as_expected
    assert not spec.Found(world=sound, violated=("S1",)).as_expected
    assert not spec.Found(world=sound, dead=["table.pml:1: x"]).as_expected


def test_a_search_that_is_cut_short_is_no_result(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "DEPTH_MAX", 30)
    found = spec.search(tool, World(name="test_cut_short", says="", defines=QUICK))
    assert "cut short" in found.problem
    assert not found.as_expected


def test_a_step_that_never_comes_is_reported_with_its_line(
    tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in spec.MODEL.glob("*.pml"):
        (tmp_path / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    coordinator = tmp_path / "coordinator.pml"
    text = coordinator.read_text(encoding="utf-8")
    never = "    :: STEP { state[c] == IDLE && begun > TRANSACTIONS -> current[c] = 7 }\n    :: gives_up()\n"
    changed = text.replace("    :: gives_up()\n", never)
    assert changed != text
    coordinator.write_text(changed, encoding="utf-8")
    line = next(n for n, one in enumerate(changed.splitlines(), 1) if "current[c] = 7" in one)
    monkeypatch.setattr(spec, "MODEL", tmp_path)
    found = spec.search(tool, World(name="test_dead", says="", defines=QUICK, shows_dead_lines=True))
    assert not found.as_expected
    assert [one for one in found.dead if one.startswith(f"coordinator.pml:{line}:")]


def test_every_bug_of_the_model_is_looked_for() -> None:
    said = spec.flat()[0]
    compiled = {one for world in (*WORLDS, *BUGS, *WHAT_IFS) for one in world.defines}
    assert set(re.findall(r"BUG_[A-Z_]*[A-Z]", said)) - {"BUG_"} == {
        one for one in compiled if one.startswith("BUG_")
    }
    for define in compiled:
        assert re.search(rf"\b{define.split('=')[0]}\b", said), f"the model knows no {define}"
