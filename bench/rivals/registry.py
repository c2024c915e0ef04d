"""The rivals by name, as the command line and the figures know them: `name`, `name-place`, `name@variant`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.figures import Measured
from bench.lakes import TITLES, Place
from bench.rivals import iceberg_connect, lockstep_run, plain_writer, structured_streaming
from bench.rivals.base import Load
from lockstep.config.units import parse_duration_ms
from lockstep.errors import ConfigError

STREAMING_BATCH_RECORDS = 4_000_000
"""Of Structured Streaming, where no variant says otherwise: what did best among those that were tried."""
BATCH, INTERVAL, WORKERS = "records of a batch", "interval between commits", "number of workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """`window`: what is inside its window, a phrase. `variant`: what `@` says. `unit`: runs beside these.
    `places`: where its table may be. `formats`: what it reads.
    """

    name: str
    title: str
    window: str
    variant: str
    unit: str
    places: frozenset[Place] = frozenset(Place)
    formats: frozenset[str] = frozenset({"json"})


LOCKSTEP = Rival(
    name="lockstep",
    title="Lockstep",
    window=lockstep_run.WINDOW,
    variant=INTERVAL,
    unit="lockstep",
    formats=frozenset({"json", "avro", "protobuf"}),
)

RIVALS: Mapping[str, Rival] = {
    rival.name: rival
    for rival in (
        LOCKSTEP,
        replace(LOCKSTEP, name="lockstep-plain", title="Lockstep with the plain reader"),
        replace(LOCKSTEP, name="lockstep-no-native", title="Lockstep with the plain decoder"),
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
        replace(
            LOCKSTEP,
            name="lockstep-clustering",
            title="Lockstep while small files are put together",
            unit="clustering",
        ),
        replace(LOCKSTEP, name="lockstep-page", title="Lockstep, its page open and scraped", unit="page"),
        replace(LOCKSTEP, name="lockstep-no-page", title="Lockstep without its page"),
        Rival(
            name="streaming",
            title="Spark Structured Streaming → Hudi",
            window=structured_streaming.WINDOW,
            variant=BATCH,
            unit="streaming",
            formats=frozenset({"json", "avro"}),
        ),
        Rival(
            name="iceberg-cold",
            title="Iceberg Kafka Connect, cold JVM",
            window=iceberg_connect.COLD_WINDOW,
            variant=INTERVAL,
            unit="iceberg",
            places=frozenset({Place.FILE, Place.S3, Place.FAR}),
        ),
        Rival(
            name="iceberg-warm",
            title="Iceberg Kafka Connect, warm JVM",
            window=iceberg_connect.WARM_WINDOW,
            variant=INTERVAL,
            unit="iceberg",
            places=frozenset({Place.FILE, Place.S3, Place.FAR}),
        ),
        Rival(
            name="plain",
            title="plain writer, no protocol, no table",
            window=plain_writer.WINDOW,
            variant=INTERVAL,
            unit="plain",
            places=frozenset({Place.FILE}),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A rival as it was asked for. `interval_s`, `batch_records`, `workers`: None where the usual counts."""

    label: str
    rival: Rival
    place: Place = Place.FILE
    interval_s: float | None = None
    batch_records: int | None = None
    workers: int | None = None

    @property
    def title(self) -> str:
        _, _, variant = self.label.partition("@")
        return ", ".join(filter(None, (self.rival.title, TITLES[self.place], variant)))

    @property
    def unit(self) -> str:
        """At each place another."""
        return f"{self.rival.unit} {self.place}"


def parse(label: str) -> Entry:
    """`lockstep`, `lockstep-s3`, `lockstep-s3-far@60s`, `streaming@500000`. Raises `ConfigError`."""
    whole, at, variant = label.partition("@")
    name, place = _placed(whole)
    rival = RIVALS.get(name)
    if rival is None:
        raise ConfigError(f"There is no rival {name}: choose of {', '.join(RIVALS)}.")
    if place not in rival.places:
        raise ConfigError(f"--rival {label}: {rival.title} does not write there.")
    entry = Entry(label=label, rival=rival, place=place)
    if not at:
        return entry
    try:
        if rival.variant == INTERVAL:
            return replace(entry, interval_s=parse_duration_ms(variant) / 1_000)
        number = int(variant)
        if rival.variant == BATCH:
            return replace(entry, batch_records=number)
        if number < 1:
            raise ValueError("it begins at 1")
        return replace(entry, workers=number)
    except ValueError as error:
        raise ConfigError(f"--rival {label}: after the @ comes the {rival.variant}: {error}.") from error


def reading(entries: Sequence[Entry], form: str) -> list[Entry]:
    """Those whose rivals read the format. Raises `ConfigError` where it is none of them."""
    found = [entry for entry in entries if form in entry.rival.formats]
    if not found:
        raise ConfigError(f"None of {', '.join(entry.label for entry in entries)} reads {form}.")
    return found


def _placed(name: str) -> tuple[str, Place]:
    """The rival's name and where its table is."""
    for place in (Place.FAR, Place.S3, Place.HDFS):
        if name.endswith(f"-{place}"):
            return name.removesuffix(f"-{place}"), place
    return name, Place.FILE


def order(entries: Sequence[Entry], round_number: int) -> list[Entry]:
    """Who runs when in a round: every other round backwards, so that what drifts meets each from both sides.

    Rivals that share a process stay together and in their order.
    """
    units = list(dict.fromkeys(entry.unit for entry in entries))
    if round_number % 2:
        units.reverse()
    return [entry for unit in units for entry in entries if entry.unit == unit]


class Runners:
    """Runs loads; keeps what rivals share between loads, and ends it in `close`."""

    def __init__(self) -> None:
        self._iceberg = iceberg_connect.Iceberg()
        self._runs: Mapping[str, Callable[[Load], Measured]] = {
            "lockstep": lockstep_run.run,
            "lockstep-plain": lockstep_run.run_plain,
            "lockstep-no-native": lockstep_run.run_plain_decoder,
            "lockstep-workers": lockstep_run.run,
            "lockstep-cluster": lockstep_run.run_on_cluster,
            "lockstep-append": lockstep_run.run_append,
            "lockstep-compacting": lockstep_run.run_compacting,
            "lockstep-clustering": lockstep_run.run_clustering,
            "lockstep-page": lockstep_run.run_watched,
            "lockstep-no-page": lockstep_run.run_unwatched,
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
