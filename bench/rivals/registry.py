"""The rivals by name, as the command line and the figures know them: `name`, or `name@variant`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.figures import Measured
from bench.rivals import iceberg_connect, lockstep_run, plain_writer, structured_streaming
from bench.rivals.base import Load
from lockstep.config.units import parse_duration_ms
from lockstep.errors import ConfigError

STREAMING_BATCH_RECORDS = 4_000_000
"""Of Structured Streaming, where no variant says otherwise: what did best among those that were tried."""
BATCH, INTERVAL, WORKERS = "records of a batch", "interval between commits", "number of workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """`window`: what is inside its window, a phrase. `variant`: what `@` says. `unit`: runs beside these."""

    name: str
    title: str
    window: str
    variant: str
    unit: str


LOCKSTEP = Rival(
    name="lockstep", title="Lockstep", window=lockstep_run.WINDOW, variant=INTERVAL, unit="lockstep"
)

RIVALS: Mapping[str, Rival] = {
    rival.name: rival
    for rival in (
        LOCKSTEP,
        replace(LOCKSTEP, name="lockstep-plain", title="Lockstep with the plain reader"),
        replace(LOCKSTEP, name="lockstep-workers", title="Lockstep with workers", variant=WORKERS),
        replace(
            LOCKSTEP,
            name="lockstep-cluster",
            title="Lockstep on a standalone cluster of two worker processes",
        ),
        replace(
            LOCKSTEP, name="lockstep-append", title="Lockstep, the same records as new rows", unit="append"
        ),
        replace(
            LOCKSTEP, name="lockstep-compacting", title="Lockstep while compactions run", unit="compacting"
        ),
        Rival(
            name="streaming",
            title="Spark Structured Streaming → Hudi",
            window=structured_streaming.WINDOW,
            variant=BATCH,
            unit="streaming",
        ),
        Rival(
            name="iceberg-cold",
            title="Iceberg Kafka Connect, cold JVM",
            window=iceberg_connect.COLD_WINDOW,
            variant=INTERVAL,
            unit="iceberg",
        ),
        Rival(
            name="iceberg-warm",
            title="Iceberg Kafka Connect, warm JVM",
            window=iceberg_connect.WARM_WINDOW,
            variant=INTERVAL,
            unit="iceberg",
        ),
        Rival(
            name="plain",
            title="plain writer, no protocol, no table",
            window=plain_writer.WINDOW,
            variant=INTERVAL,
            unit="plain",
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A rival as it was asked for. `interval_s`, `batch_records`, `workers`: None where the usual counts."""

    label: str
    rival: Rival
    interval_s: float | None = None
    batch_records: int | None = None
    workers: int | None = None

    @property
    def title(self) -> str:
        _, _, variant = self.label.partition("@")
        return f"{self.rival.title}, {variant}" if variant else self.rival.title


def parse(label: str) -> Entry:
    """`lockstep`, `lockstep@60s`, `streaming@500000`. Raises `ConfigError`."""
    name, at, variant = label.partition("@")
    rival = RIVALS.get(name)
    if rival is None:
        raise ConfigError(f"There is no rival {name}: choose of {', '.join(RIVALS)}.")
    if not at:
        return Entry(label=label, rival=rival)
    try:
        if rival.variant == INTERVAL:
            return Entry(label=label, rival=rival, interval_s=parse_duration_ms(variant) / 1_000)
        number = int(variant)
        if rival.variant == BATCH:
            return Entry(label=label, rival=rival, batch_records=number)
        if number < 1:
            raise ValueError("it begins at 1")
        return Entry(label=label, rival=rival, workers=number)
    except ValueError as error:
        raise ConfigError(f"--rival {label}: after the @ comes the {rival.variant}: {error}.") from error


def order(entries: Sequence[Entry], round_number: int) -> list[Entry]:
    """Who runs when in a round: every other round backwards, so that what drifts meets each from both sides.

    Rivals that share a process stay together and in their order.
    """
    units = list(dict.fromkeys(entry.rival.unit for entry in entries))
    if round_number % 2:
        units.reverse()
    return [entry for unit in units for entry in entries if entry.rival.unit == unit]


class Runners:
    """Runs loads; keeps what rivals share between loads, and ends it in `close`."""

    def __init__(self) -> None:
        self._iceberg = iceberg_connect.Iceberg()
        self._runs: Mapping[str, Callable[[Load], Measured]] = {
            "lockstep": lockstep_run.run,
            "lockstep-plain": lockstep_run.run_plain,
            "lockstep-workers": lockstep_run.run,
            "lockstep-cluster": lockstep_run.run_on_cluster,
            "lockstep-append": lockstep_run.run_append,
            "lockstep-compacting": lockstep_run.run_compacting,
            "streaming": structured_streaming.run,
            "iceberg-cold": self._iceberg.cold,
            "iceberg-warm": self._iceberg.warm,
            "plain": plain_writer.run,
        }

    def run(self, entry: Entry, load: Load) -> Measured:
        """One load. Nobody else's process is left running beside it."""
        if entry.rival.unit != "iceberg":
            self._iceberg.close()
        try:
            return self._runs[entry.rival.name](load)
        except BaseException:
            self._iceberg.close()  # what has failed once is not asked again
            raise

    def close(self) -> None:
        self._iceberg.close()
