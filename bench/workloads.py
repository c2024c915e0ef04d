"""What is put on the topic: named workloads, each a pure function from a number to a record's value.

The same number gives the same bytes in every run and on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.encodings import AVRO, PROTOBUF, Encoding

SOURCE_PARTITIONS = 4
RUN_RECORDS = 1_000
"""So many records in a row go to the same source partition, as batching producers do it."""
MIX = 2_654_435_761
KEYS = 1_000_000
"""Of the upserts. A power of ten, as `key_of` needs it."""
DAY_1_MS = 1_767_225_600_000

COUNTRIES = ("AR", "BR", "CN", "DE", "ES", "FR", "GB", "IN", "IT", "JP", "KE", "MX", "NG", "PL", "US", "VN")
ACTIONS = ("view", "search", "cart", "buy", "return")
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll")

NARROW = (
    "event_id STRING, user_id BIGINT, country STRING, action STRING, amount DOUBLE, ts BIGINT, "
    "day STRING, page STRING"
)
TINY = "id STRING, n BIGINT, up BOOLEAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`schema`: Spark DDL. `value`: the record of a number. `size_bytes`: of a value, about.

    `weights`: how many runs of records each source partition gets of a round. `ordering`: the whole-number
    field that Hudi's datasource is given to order by. `partition_by`: empty, the table is not partitioned;
    `table_partitions`: how many values that field has. Unless told otherwise: `interval_s` between commits,
    and `records`, so many that the fastest has some 20 s between its first and its last whole commit.

    `kind`: `insert`, each record is a new row; `upsert`, it changes the row of its key, in a merge-on-read
    table with so many `buckets` in each table partition. Then `key_of` gives the key's number, records of a
    key share a source partition, and no record comes twice.

    `encoding`: what values are in; None is JSON.
    """

    name: str
    title: str
    schema: str
    value: Callable[[int], bytes]
    size_bytes: int
    key: str
    ordering: str
    partition_by: str = ""
    table_partitions: int = 1
    weights: Sequence[int] = (1,) * SOURCE_PARTITIONS
    interval_s: float = 5.0
    records: int = 20_000_000
    kind: str = "insert"
    buckets: int = 0
    key_of: Callable[[int], int] | None = None
    encoding: Encoding | None = None

    @property
    def format(self) -> str:
        """As Lockstep calls what values are in."""
        return self.encoding.format if self.encoding is not None else "json"

    @property
    def source_partitions(self) -> int:
        return len(self.weights)

    def source_partition(self, number: int) -> int:
        """Where the record of this number goes."""
        if self.key_of is not None:
            return self.key_of(number) % self.source_partitions
        turn = number // RUN_RECORDS % sum(self.weights)
        for partition, weight in enumerate(self.weights):
            if turn < weight:
                return partition
            turn -= weight
        raise AssertionError("unreachable: the turn is below the sum of the weights")

    def as_inserts(self) -> Workload:
        """The same records for a table that only takes new rows."""
        return replace(self, kind="insert", buckets=0)

    def describe(self) -> dict[str, object]:
        """For the evidence."""
        return {
            "name": self.name,
            "title": self.title,
            "value_bytes": self.size_bytes,
            "source_partition_weights": list(self.weights),
            "table_partitions": self.table_partitions,
            "interval_s": self.interval_s,
            "kind": self.kind,
            "buckets": self.buckets,
            **({"format": self.format} if self.encoding is not None else {}),
        }


# --- values -----------------------------------------------------------------------------------------


def narrow(number: int, *, day: str = "", key: int | None = None) -> bytes:
    """8 fields, about 160 bytes. `key`: of its id, where that is not the record's own number."""
    mixed = _mixed(number)
    return (
        f'{{"event_id":"e-{number if key is None else key:010d}","user_id":{mixed % 250_000},'
        f'"country":"{COUNTRIES[mixed >> 28]}",'
        f'"action":"{ACTIONS[mixed % 5]}","amount":{mixed % 20_000 / 100},"ts":{DAY_1_MS + number},'
        f'"day":"{day or DAYS[number % len(DAYS)]}","page":"/products/{mixed % 5_000}?from=home"}}'
    ).encode()


def key_of(number: int) -> int:
    """Which key a record changes: pass after pass over all of them, each pass in an order of its own."""
    turn, place = divmod(number, KEYS)
    step = (271_830 * turn + 618_031) % KEYS  # it ends in 1, so a pass meets every key
    return place * step % KEYS


def change(number: int) -> bytes:
    """The narrow record, of a key that others have as well; a key's `day` never changes, and `ts` grows."""
    key = key_of(number)
    return narrow(number, day=DAYS[key // SOURCE_PARTITIONS % len(DAYS)], key=key)


def tiny(number: int) -> bytes:
    """3 fields, 40 bytes."""
    up = "true" if number % 2 else "false"
    return f'{{"id":"{number % 10**10:010d}","n":{_mixed(number) % 10**7},"up":{up}}}'.encode()


def wide(number: int) -> bytes:
    """60 columns, 4 of them nested, about 1.5 kB."""
    mixed = _mixed(number)
    parts = [
        f'"event_id":"e-{number:010d}","ts":{DAY_1_MS + number},"day":"{DAYS[number % len(DAYS)]}"',
        f'"geo":{{"country":"{COUNTRIES[mixed >> 28]}","city":"{_word(mixed)}ville",'
        f'"lat":{mixed % 9_000 / 100},"lon":{mixed % 18_000 / 100}}}',
        f'"device":{{"kind":"{ACTIONS[mixed % 5]}",'
        f'"screen":{{"width":{mixed % 4_000},"height":{mixed % 3_000}}},'
        f'"agent":"Browser/{mixed % 200}.{mixed % 10} ({_word(mixed >> 3)}; {_word(mixed >> 5)})"}}',
        f'"tags":["{_word(mixed)}","{_word(mixed >> 4)}","{_word(mixed >> 8)}"]',
        f'"items":[{{"sku":"s-{mixed % 90_000:05d}","count":{1 + mixed % 9}}},'
        f'{{"sku":"s-{mixed % 80_000:05d}","count":{1 + mixed % 7}}}]',
    ]
    parts += [f'"text_{n:02d}":"{_word(mixed >> n)}-{_mixed(mixed + n):010d}"' for n in range(24)]
    parts += [f'"count_{n:02d}":{_mixed(mixed + n) % 10 ** (n % 8 + 1)}' for n in range(16)]
    parts += [f'"ratio_{n:02d}":{(_mixed(mixed * n + 1) % 100_000) / 1_000}' for n in range(8)]
    parts += [f'"is_{n:02d}":{"true" if mixed >> n & 1 else "false"}' for n in range(5)]
    return ("{" + ",".join(parts) + "}").encode()


def _wide_schema() -> str:
    columns = ["event_id STRING", "ts BIGINT", "day STRING"]
    columns += ["geo STRUCT<country: STRING, city: STRING, lat: DOUBLE, lon: DOUBLE>"]
    columns += ["device STRUCT<kind: STRING, screen: STRUCT<width: BIGINT, height: BIGINT>, agent: STRING>"]
    columns += ["tags ARRAY<STRING>", "items ARRAY<STRUCT<sku: STRING, count: BIGINT>>"]
    columns += [f"text_{n:02d} STRING" for n in range(24)]
    columns += [f"count_{n:02d} BIGINT" for n in range(16)]
    columns += [f"ratio_{n:02d} DOUBLE" for n in range(8)]
    columns += [f"is_{n:02d} BOOLEAN" for n in range(5)]
    return ", ".join(columns)


def _partitioned(partitions: int) -> Callable[[int], bytes]:
    """The narrow record with so many values of its day, all of them in every few thousand records."""
    return lambda number: narrow(number, day=f"part-{_mixed(number) % partitions:04d}")


def _mixed(number: int) -> int:
    return (number * MIX) & 0xFFFF_FFFF


def _word(number: int) -> str:
    return WORDS[number % len(WORDS)]


# --- the workloads ----------------------------------------------------------------------------------


def _narrow(
    name: str,
    title: str,
    *,
    value: Callable[[int], bytes] = narrow,
    table_partitions: int = len(DAYS),
    weights: Sequence[int] = (1,) * SOURCE_PARTITIONS,
    interval_s: float = 5.0,
    records: int = 20_000_000,
) -> Workload:
    return Workload(
        name=name,
        title=title,
        schema=NARROW,
        value=value,
        size_bytes=len(value(12_345)),
        key="event_id",
        ordering="ts",
        partition_by="day",
        table_partitions=table_partitions,
        weights=weights,
        interval_s=interval_s,
        records=records,
    )


UPSERTS = replace(
    _narrow("upserts", "upserts, narrow, 1,000,000 keys", value=change, records=4_000_000),
    kind="upsert",
    buckets=4,
    key_of=key_of,
)
WORKLOADS: Mapping[str, Workload] = {
    one.name: one
    for one in (
        _narrow("narrow", "narrow JSON, 8 fields"),
        Workload(
            name="wide",
            title="wide JSON, 60 columns, nested",
            schema=_wide_schema(),
            value=wide,
            size_bytes=len(wide(12_345)),
            key="event_id",
            ordering="ts",
            partition_by="day",
            table_partitions=len(DAYS),
            records=4_000_000,
        ),
        Workload(
            name="tiny",
            title="tiny JSON, 3 fields",
            schema=TINY,
            value=tiny,
            size_bytes=len(tiny(12_345)),
            key="id",
            ordering="n",
            records=40_000_000,
        ),
        _narrow("skewed", "narrow, one source partition has 80 %", weights=(12, 1, 1, 1)),
        *(
            _narrow(
                f"partitions-{count}",
                f"narrow, {count:,} table partition{'s' if count > 1 else ''}",
                value=_partitioned(count),
                table_partitions=count,
            )
            for count in (1, 24, 1_000)
        ),
        _narrow("short", "narrow, a commit each second", interval_s=1.0),
        _narrow(
            "files",
            "narrow, 50 table partitions, so 100 files in a commit of two workers",
            value=_partitioned(50),
            table_partitions=50,
            interval_s=1.0,
        ),
    )
}
"""Those of new rows."""
ENCODED: Mapping[str, Workload] = {
    name: replace(
        _narrow(name, f"narrow {title}, 8 fields", value=encoding.of_json(narrow), records=16_000_000),
        encoding=encoding,
    )
    for name, title, encoding in (("avro", "Avro", AVRO), ("protobuf", "Protobuf", PROTOBUF))
}
"""The narrow records in other formats, of a schema registry."""
SPREAD: Mapping[int, Workload] = {
    count: _narrow(
        f"spread-{count}",
        f"narrow, {count:,} table partitions in each of ten source partitions",
        value=_partitioned(count),
        table_partitions=count,
        weights=(1,) * 10,
        interval_s=2.0,
    )
    for count in (500, 1_000, 5_000)
}
"""By table partitions: for many workers, each of which reads records of all of them."""
EVERY: Mapping[str, Workload] = {
    **WORKLOADS,
    UPSERTS.name: UPSERTS,
    **ENCODED,
    **{one.name: one for one in SPREAD.values()},
}
