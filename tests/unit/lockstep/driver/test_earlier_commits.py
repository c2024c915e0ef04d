"""Signs outside the timeline that a pipeline has committed before."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_topic.messages import Offsets, SourcePartition
from lockstep.config import load
from lockstep.driver.earlier_commits import earlier_commits
from table.errors import Unavailable
from table.service.place import Place
from table.service.source_facts import SourceFacts
from table.store.local import LocalStore
from tests.unit.lockstep.test_cli import PIPELINE

P0 = SourcePartition("events", 0)
FACTS = SourceFacts(cluster="c", topics={"events": "t"}, partitions=(P0,))


class Group:
    """A consumer group with these offsets."""

    def __init__(self, offsets: Offsets) -> None:
        self.offsets = offsets

    def group_offsets(self, group: str, partitions: tuple[SourcePartition, ...]) -> Offsets:
        return self.offsets


def test_the_groups_offsets_and_a_runs_note_are_signs(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    config = load(path, sets=[f"table.path=file://{tmp_path}/table"])
    assert earlier_commits(config, Group({}), FACTS) == ""
    said = f"consumer group {config.group_id} has committed offsets (events:0=7)"
    assert earlier_commits(config, Group({P0: 7}), FACTS) == said
    notes = tmp_path / "table" / ".hoodie"
    notes.mkdir(parents=True)
    place = Place(LocalStore(notes), pipeline=config.pipeline.id, run="r")
    place.occupy()
    assert earlier_commits(config, Group({}), FACTS) == ""
    place.note_commits()
    assert "an earlier run has noted its commits in" in earlier_commits(config, Group({}), FACTS)


def test_a_note_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    config = load(path, sets=[f"table.path=file://{tmp_path}/table"])
    (tmp_path / "table").write_text("no folder")
    with pytest.raises(Unavailable):
        earlier_commits(config, Group({}), FACTS)
