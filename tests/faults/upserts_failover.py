"""Change data in another order than it was made: sent again, or from a server whose log begins anew."""

from __future__ import annotations

import re
import time

from lockstep.errors import EXIT_HALTED
from tests.debezium_events import binlog_change
from tests.faults import upkeep
from tests.faults.acts import halts_after_s, runs_well
from tests.faults.scenario import ON_FILES, Outcome, scenario
from tests.faults.sql import say
from tests.faults.stage import Stage
from tests.faults.upsert_model import SETTINGS, held_rows
from tests.harness import SCHEMA, await_that
from tests.merge_model import Key

KEYS, ROUNDS = 400, 10
COMPACTION_S = 180.0
PLACE = 1_000_000
"""Of the first change in the old server's binlogs."""
HALTED = re.compile(r":(\d+) at offset (\d+): this change was made later than all before it")

Rows = dict[Key, tuple[int, int]]
Records = list[tuple[bytes | None, bytes | None]]


def _changes(
    stage: Stage, rows: Rows, *, place: int, minute: int, rounds: int, tombstones: bool = False
) -> list[tuple[int, Records]]:
    """Each round changes every key, in its source partition; every tenth of them is deleted.

    What was sent, in its order: (source partition, records).
    """
    sent = []
    for number in range(rounds):
        for partition in range(stage.pipeline.partitions):
            records: Records = []
            for index in range(partition, KEYS, stage.pipeline.partitions):
                name, amount = f"k-{index}", (number * KEYS) + index
                gone = (index + number) % 10 == 0
                op = "d" if gone else "u" if ("a", name) in rows else "c"
                records.append(binlog_change(op, name, place + number * KEYS + index, minute, amount))
                rows.pop(("a", name), None)
                if not gone:
                    rows["a", name] = (amount, minute)
                elif tombstones:
                    records.append((records[-1][0], None))
            _send(stage, partition, records)
            sent.append((partition, records))
    return sent


def _send(stage: Stage, partition: int, records: Records) -> None:
    stage.pipeline.produce_keyed(records, partition=partition)
    stage.pipeline.produced += len(records)


@scenario(
    "Upserts",
    fault="the database behind change data fails over to a server whose binlogs begin anew, and a worker is "
    "killed before",
    expected="the run halts at the first change of each source partition, at each start again, everything "
    "before it in the table; the documented way on, in the same table, ends with the new server's rows",
    stores=ON_FILES,
)
def change_data_after_a_failover(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    _configure(stage)
    before, after = Rows(), Rows()
    run = stage.restart()
    _changes(stage, before, place=PLACE, minute=1, rounds=ROUNDS)
    stage.processes()
    run.kill_worker(coordinator=False)
    _changes(stage, before, place=PLACE + ROUNDS * KEYS, minute=2, rounds=ROUNDS)
    await_that("commit of all", lambda: pipeline.committed() == pipeline.produced, deadline_s=120)
    _changes(stage, after, place=100, minute=3, rounds=1)
    said = ("this change was made later than all before it", "When the source's log begins anew")
    halted_s = halts_after_s(run, *said)
    halts = _pass_over_each(stage, before)
    amounts = {int(name.removeprefix("k-")): amount for (_, name), (amount, _ts) in sorted(after.items())}
    for partition in range(pipeline.partitions):
        here = [index for index in amounts if index % pipeline.partitions == partition]
        snapshot = [binlog_change("r", f"k-{index}", 0, 4, amounts[index]) for index in here]
        pipeline.produce_keyed(snapshot, partition=partition)
    for index in range(pipeline.partitions):  # of the changes that were passed over the snapshot has the rows
        if ("a", f"k-{index}") in after:
            after["a", f"k-{index}"] = (index, 4)
    pipeline.produce_keyed([binlog_change("c", "k-0", 100 + KEYS, 5, 7)], partition=0)
    after["a", "k-0"] = (7, 5)
    runs_well(pipeline)
    assert dict(held_rows(pipeline.place, pipeline.folder)) == after
    return Outcome(notes={"halted_after_s": halted_s, "halts": halts, "rows": len(after)})


@scenario(
    "Upserts",
    fault="a connector sends its last changes again, deletes and tombstones among them, after a worker, the "
    "coordinator's worker and the driver were killed, with compactions in between",
    expected="a row that is newer stays; in the end every row is as the last of its changes says",
    settings={"services.compaction": "async", "services.compaction_every": "2"},
)
def change_data_sent_again(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    _configure(stage)
    rows = Rows()
    stage.restart()
    for number, kill in enumerate((_kill_worker, _kill_coordinators_worker, _kill_driver)):
        place = PLACE + number * ROUNDS * KEYS
        sent = _changes(stage, rows, place=place, minute=1 + number, rounds=ROUNDS, tombstones=True)
        stage.processes()
        kill(stage)
        _send_again(stage, sent)
    deadline_s = time.monotonic() + COMPACTION_S
    while not upkeep.completed(pipeline.place, upkeep.Action.COMPACTION):
        assert time.monotonic() < deadline_s, f"no compaction was completed within {COMPACTION_S:.0f} s"
        _send_again(stage, sent)
    assert stage.current.stop() == 0, stage.current.text()[-4_000:]
    assert dict(held_rows(pipeline.place, pipeline.folder)) == rows
    return Outcome(notes={"changes": pipeline.produced, "rows": len(rows)})


def _send_again(stage: Stage, sent: list[tuple[int, Records]]) -> None:
    """Until it is committed."""
    for partition, records in sent:
        _send(stage, partition, records)
    pipeline = stage.pipeline
    await_that("commit of all", lambda: pipeline.committed() == pipeline.produced, deadline_s=120)


def _kill_worker(stage: Stage) -> None:
    stage.current.kill_worker(coordinator=False)


def _kill_coordinators_worker(stage: Stage) -> None:
    stage.current.kill_worker(coordinator=True)


def _kill_driver(stage: Stage) -> None:
    stage.current.kill()
    stage.restart()


def _configure(stage: Stage) -> None:
    """In the file, since `lockstep offsets` reads nothing else."""
    text = stage.pipeline.config.read_text(encoding="utf-8")
    text = text.replace("[record]", '[record]\nenvelope = "debezium"\non_error = "dead_letter"')
    text = text.replace('partition_by = "day"', 'kind = "upsert"\nbuckets = 3')
    text = text.replace('"event_id"', '"id"').replace(SCHEMA, SETTINGS["record.schema"])
    stage.pipeline.config.write_text(text, encoding="utf-8")


def _pass_over_each(stage: Stage, rows: Rows) -> int:
    """As docs/upserts.md tells an operator to; how often a run was halted on the way."""
    pipeline = stage.pipeline
    assert dict(held_rows(pipeline.place, pipeline.folder)) == rows
    say(
        pipeline.folder,
        f"create table anew using hudi location '{pipeline.table}'",
        "delete from anew",
        f"call run_compaction(op => 'scheduleandexecute', path => '{pipeline.table}', "
        "options => 'hoodie.compact.inline.max.delta.commits=1')",
    )
    passed: set[str] = set()
    while len(passed) < pipeline.partitions:
        halted = pipeline.run_to_end()
        assert halted.process.returncode == EXIT_HALTED, halted.text()[-4_000:]
        found = HALTED.search(" ".join(halted.text().split()))
        assert found is not None and found[1] not in passed, halted.text()[-4_000:]
        passed.add(found[1])
        place = f"{pipeline.topic}:{found[1]}={int(found[2]) + 1}"
        pipeline.change_offsets("--set", place, reason="failover")
    return len(passed) + 1
