"""Is the table what the shop's database is? Read by Spark SQL, and compared row by row with the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep.config import Config
from lockstep.demo.processes import run_spark
from lockstep.demo.report import from_here, verdict_text
from lockstep.demo.shop import FOLLOWED, Model, Order, Version
from lockstep.launch.submit import JAVA_OPTIONS, find_spark_home, needs_of
from lockstep.output import readable_count
from lockstep.output import table as plain_table
from table.store.connectors import hadoop_settings
from table.store.location import Location

SPARK_JOB = Path(__file__).with_name("spark_orders.py")
SHELL_CONF, SHELL_SQL = "spark.conf", "orders.sql"
SHOWN_MAX = 10
BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Ids of rows: only in the model, only in the table, in both but not equal, doubled in the table."""

    missing: Sequence[int]
    unexpected: Sequence[int]
    different: Sequence[int]
    doubled: Sequence[int]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.different or self.doubled)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedOrder:
    """The followed order as a query finds it."""

    instant: str
    """As of when it was asked, which is when a commit was completed."""

    order: Order | None
    """None where no row was found."""


def differences(model: Mapping[int, Version], rows: Iterable[Version]) -> Differences:
    """Compare every row, with its position. Pure."""
    left = dict(model)
    unexpected: list[int] = []
    different: list[int] = []
    doubled: list[int] = []
    for row in rows:
        number = row.order.id
        expected = left.pop(number, None)
        if expected is None:
            (doubled if number in model else unexpected).append(number)
        elif expected != row:
            different.append(number)
    return Differences(missing=list(left), unexpected=unexpected, different=different, doubled=doubled)


def changes_of(states: Sequence[FollowedOrder]) -> list[FollowedOrder]:
    """Those states that differ from the one before, from the first row on."""
    changed: list[FollowedOrder] = []
    for state in states:
        if state.order != (changed[-1].order if changed else None):
            changed.append(state)
    return changed


def is_part_of(seen: Sequence[Order | None], happened: Sequence[Order | None]) -> bool:
    """Whether all that was seen happened, in this order, and the last is the last."""
    left = iter(happened)
    return all(any(one == other for other in left) for one in seen) and seen[-1:] == list(happened[-1:])


def compare(
    model: Model, *, commits: Sequence[str], compactions: int, config: Config, config_path: Path
) -> Compared:
    """Have Spark SQL read the table, and compare. `commits`: when each was completed, in order.

    Raises `Failed`.
    """
    _write_shell_files(config_path.parent, config)
    result = config_path.with_name("orders")
    run_spark(SPARK_JOB, config, config_path, [str(result), str(FOLLOWED), *commits])
    found = json.loads((result / "states.json").read_text(encoding="utf-8"))
    states = [
        FollowedOrder(instant=instant, order=Order(*found[instant]) if instant in found else None)
        for instant in commits
    ]
    rows = pq.read_table(result / "rows")
    return Compared(
        model=model,
        rows=rows.num_rows,
        differences=differences(model.rows, _versions(rows)),
        states=changes_of(states),
        compactions=compactions,
    )


def _write_shell_files(folder: Path, config: Config) -> None:
    """What Spark's own shell needs to know: of Hudi, and of the table."""
    needs = needs_of(config)
    conf = {
        "spark.jars.packages": ",".join(needs.reading),
        JAVA_OPTIONS: needs.java_options,
        **needs.conf,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        **_store_conf(config),
    }
    lines = "".join(f"{name} {value}\n" for name, value in conf.items())
    (folder / SHELL_CONF).write_text(lines, encoding="utf-8")
    (folder / SHELL_SQL).write_text(
        f"CREATE TABLE orders USING hudi LOCATION '{config.table.path}';\n", encoding="utf-8"
    )


def _store_conf(config: Config) -> dict[str, str]:
    """How Spark's shell reaches the demo's own S3 server, whose keys everybody knows."""
    storage = config.store_settings()
    if storage is None:
        return {}
    found = hadoop_settings(Location.parse(config.table.path), storage)
    return {f"spark.hadoop.{name}": value for name, value in {**found.plain, **found.secret}.items()}


def _versions(rows: pa.Table) -> Iterator[Version]:
    for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
        for *order, position in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Version(Order(*order), position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """As `lockstep.demo.report.Finding` says. `states`: of the followed order, those that are new."""

    model: Model
    rows: int
    differences: Differences
    states: Sequence[FollowedOrder]
    compactions: int

    @property
    def exact(self) -> bool:
        return not self.differences and self._history_is_true

    @property
    def _history_is_true(self) -> bool:
        return is_part_of([one.order for one in self.states], self.model.followed)

    def heading(self) -> str:
        if self.exact:
            return f"Equal: {readable_count(self.rows)} rows, each as the shop has it, and none besides."
        return "NOT equal: the table is not what the shop has."

    def figures(self) -> Iterator[tuple[str, str]]:
        ops = {op: readable_count(self.model.ops[op]) for op in "rcud"}
        yield "snapshot", f"{ops['r']} rows read"
        yield "changes", f"{ops['c']} inserts, {ops['u']} updates, {ops['d']} deletes, each with a tombstone"
        yield "compactions", f"{self.compactions} completed while commits went on"

    def details(self) -> RenderableType:
        return Group(self._comparison(), *self._wrong(), Text(), *self._history())

    def _comparison(self) -> Table:
        wrong = self.differences
        grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
        for name in ("row by row", "rows", "missing", "unexpected", "different", ""):
            numbers = name not in ("row by row", "")
            grid.add_column(name, justify="right" if numbers else "left", no_wrap=True)
        grid.add_row("as it must be", readable_count(len(self.model.rows)))
        figures = (self.rows, len(wrong.missing), len(wrong.unexpected), len(wrong.different))
        grid.add_row("Spark SQL", *map(readable_count, figures), verdict_text(not wrong, word="equal"))
        return grid

    def _wrong(self) -> Iterator[Text]:
        """Which rows are not as they must be, a few of each kind."""
        for name, ids in asdict(self.differences).items():
            if ids:
                more = f" and {len(ids) - SHOWN_MAX} more" if len(ids) > SHOWN_MAX else ""
                some = ", ".join(map(str, sorted(ids)[:SHOWN_MAX]))
                yield Text(f"{name}: orders {some}{more}", style="red")
        if not self._history_is_true:
            yield Text(f"the states of order {FOLLOWED} below are not what became of it", style="red")

    def _history(self) -> Iterator[RenderableType]:
        yield Text(f"Order {FOLLOWED} as the table shows it after each commit that changed it:", style="bold")
        yield Text()
        rows = [(one.instant, *_cells(one.order)) for one in self.states]
        yield plain_table(("as of", "status", "amount", "updated at"), rows, right=("amount",))
        yield Text()
        yield Text("Each line is one query of the table itself, in Spark SQL:")
        yield Text(f"  {query(self.states[-1].instant)}" if self.states else "", style="cyan")

    def commands(self, folder: str) -> Sequence[str]:
        spark_sql = from_here(find_spark_home() / "bin" / "spark-sql")
        return (f"{spark_sql} --properties-file {folder}/{SHELL_CONF} -i {folder}/{SHELL_SQL}",)

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "rows_wanted": len(self.model.rows),
            "ops": dict(self.model.ops),
            "compactions": self.compactions,
            **asdict(self.differences),
            "history": [
                {"instant": one.instant, "order": one.order and one.order._asdict()} for one in self.states
            ],
        }


def query(instant: str) -> str:
    """SQL for the followed order as it was then, over a table named `orders`."""
    return f"SELECT status, amount FROM orders TIMESTAMP AS OF '{instant}' WHERE id = {FOLLOWED}"


def _cells(order: Order | None) -> tuple[str, ...]:
    if order is None:
        return ("deleted", "", "")
    return (order.status, order.amount, order.updated_at[:19].replace("T", " "))
