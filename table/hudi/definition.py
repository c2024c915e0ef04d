"""What defines a table: what a new one is created with, and where one that exists contradicts us. Pure.

What the table says wins over the configuration, except where they contradict each other: then nothing is
written. Names and defaults are those of HoodieTableConfig in Hudi 1.2.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from table.errors import Contradiction, Refused
from table.hudi.avro import to_avro
from table.hudi.avro_columns import from_avro
from table.hudi.evolution import evolve
from table.hudi.files.base_file import META_COLUMNS
from table.hudi.files.keys import UnsafePartition, partition_path
from table.hudi.files.timed import Timed, check_timed
from table.hudi.generators import (
    KEY_GENERATORS,
    UnknownGenerator,
    fields_of_kinds,
    kept_of_generator,
    not_with_times,
    timed_of,
)
from table.hudi.layout import HudiLayout
from table.hudi.modes import (
    BUCKET_ENGINE,
    BUCKETS,
    INDEX_TYPE,
    MODES,
    index_properties,
    merge_mode,
)
from table.hudi.properties import AUTO_ARCHIVE, HIVE_STYLE, URL_ENCODE, lossy_index
from table.partition_columns import columns_of
from table.partitioners.expressions import made_columns, made_terms, record_fields, spelled
from table.partitioners.making import at
from table.port import UPSERT, TableSpec
from table.schema import SchemaError, parse_ddl, record_schema
from table.store.location import HDFS, plain, why_no_folder
from table.widening import ddl_of, united_ddl

VERSION_MIN = 8
"""The first table version whose timeline keeps completion times (layout 2)."""
PREFIXED_SINCE = 9
"""The first table version in which all of Hudi spells a COMPLEX key of one field alike
(`KeyGenUtils.encodeSingleKeyFieldNameForComplexKeyGen`)."""

SLASHED = "hoodie.datasource.write.slash.separated.date.partitioning"
"""Folders such as `2026/12/31`, of a field that is `2026-12-31`."""
TERMS = "lockstep.partition.terms"
"""How the columns are made by which the table is partitioned; in a table that we have made."""
TIMELINE_ZONE = "hoodie.table.timeline.timezone"
PATIENCE_S = 12.0
"""Of the driver with its store. A put whose answer is lost may take twice as long."""
NOT_IN_ADDRESSES = re.compile(r"[\s%\"<>\\^`{|}\[\]]")
"""Hudi reads the place of its storage lock as a URI: it fails at these, or takes `%2F` for a slash."""

PATTERN = "*"
"""Wherever a table is, Spark's datasource of Hudi 1.2 reads nothing whose path holds it."""
GLOBS = re.compile(r"[*?{}\[\]%#]")

META_FIELDS_PREFIX = "_hoodie_"
NAMESPACE = "hoodie."
"""Before the table's name, in the Avro schema of what a Spark schema is."""


def terms_of(spec: TableSpec) -> str:
    """What `TERMS` says of such a table."""
    return "; ".join(map(spelled, made_terms(spec)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A table's properties (`hoodie.properties`) and its Avro schema, empty where it has none yet."""

    properties: Mapping[str, str]
    schema: str = ""

    @property
    def name(self) -> str:
        return self.properties.get("hoodie.table.name", "")

    @property
    def version(self) -> int:
        return int(self.properties.get("hoodie.table.version", "0"))

    @property
    def key_fields(self) -> tuple[str, ...]:
        return _fields(self.properties.get("hoodie.table.recordkey.fields", ""))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        return tuple(one.partition(":")[0] for one in self.written_partition_fields)

    @property
    def written_partition_fields(self) -> tuple[str, ...]:
        """As CUSTOM has them: with the type of each, `day:SIMPLE`."""
        return _fields(self.properties.get("hoodie.table.partition.fields", ""))

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        get = self.properties.get  # the second name is that of table versions below 9
        return _fields(get("hoodie.table.ordering.fields") or get("hoodie.table.precombine.field", ""))

    @property
    def key_generator(self) -> str:
        kind = self.properties.get("hoodie.table.keygenerator.type", "")
        name = self.properties.get("hoodie.table.keygenerator.class", "")
        known = {full: short for short, full in KEY_GENERATORS.items()}
        return kind or known.get(name, name) or ("SIMPLE" if self.partition_fields else "NON_PARTITION")

    def timed(self, given: Mapping[str, str]) -> Timed | None:
        """How folders are made of fields that are times. Raises `UnknownGenerator`. `given`: `table.hudi`."""
        kinds = fields_of_kinds(self.written_partition_fields, self.key_generator)
        return timed_of(self.properties, kinds, given)

    def is_set(self, name: str, *, default: bool = False) -> bool:
        return self.properties.get(name, str(default)).lower() == "true"


def check_table(definition: Definition, spec: TableSpec) -> None:
    """Raise `Contradiction` where the table's properties do not let us write what `spec` says."""
    where = f"table {spec.path}"
    _check_key_generator(definition, spec)
    for name, has, wanted, advice in _demands(definition, spec):
        if has != wanted:
            raise Contradiction(
                f"{where}: {name} is {_show(has)}, the configuration says {_show(wanted)}: {advice}"
            )
    if definition.version < VERSION_MIN:
        raise Contradiction(
            f"{where}: hoodie.table.version is {definition.version}, Lockstep needs {VERSION_MIN} or newer: "
            "upgrade the table with a current Hudi writer first"
        )
    enabled = {name: value for name, value in definition.properties.items() if name.endswith(".enable")}
    if lossy := lossy_index(enabled):
        raise Contradiction(f"{where}: its hoodie.properties enable {lossy[0]}: {lossy[1]}. Set it to false")
    _check_terms(definition, spec)
    if _is_prefixed(definition) and definition.version < PREFIXED_SINCE:
        raise Contradiction(
            f"{where}: its key generator is COMPLEX with the one key field {definition.key_fields[0]}, whose "
            f"spelling differs between Hudi's versions in tables below version {PREFIXED_SINCE}: write to "
            "another path"
        )


def _check_key_generator(definition: Definition, spec: TableSpec) -> None:
    try:
        timed = definition.timed(spec.properties)
    except UnknownGenerator as why:
        raise Contradiction(
            f"table {spec.path}: its key generator is {definition.key_generator}: {why}; or write to another "
            "path"
        ) from why
    if timed is None:
        return
    if why_not := not_with_times(definition.key_fields, spec):
        raise Contradiction(f"table {spec.path}: {why_not}")
    record = parse_ddl(spec.ddl)
    for name in timed.fields:
        where = f"table {spec.path}: its key generator makes folders of {name} as of a time"
        if name in made_columns(spec):
            raise Contradiction(f"{where}: say {name} in table.partition_by, and no function of it")
        try:
            if name in record.names:  # else its absence is told by itself
                check_timed(timed, record.field(name))
        except SchemaError as why:
            raise Contradiction(f"{where}: {why}: change record.schema, or write to another path") from why


def _check_terms(definition: Definition, spec: TableSpec) -> None:
    """Raise `Contradiction` where the times of a table's partitions cannot be had, or be folders, in it."""
    for term in filter(lambda term: term.is_time, made_terms(spec)):
        where = f"table {spec.path}: table.partition_by: {term.function} as {term.column}"
        if term.source.is_now and definition.properties.get(TIMELINE_ZONE, "LOCAL") != "UTC":
            raise Contradiction(
                f"{where}: the table's instants are in its writers' local time, so that now() would differ "
                f"with them ({TIMELINE_ZONE} is not UTC): write to another path"
            )
        sample = at(term, datetime(2026, 12, 31, tzinfo=UTC))
        try:
            folder = partition_path(
                sample, term.column, hive_style=False, url_encode=definition.is_set(URL_ENCODE)
            )
            if why_not := why_no_folder(spec.path, folder):
                raise UnsafePartition(why_not)
        except UnsafePartition as why:
            raise Contradiction(
                f"{where}: {why}. Take other signs, or have a new table percent-encoded: {URL_ENCODE} = true "
                "in table.hudi"
            ) from why


def _is_prefixed(definition: Definition) -> bool:
    """Whether a key of one field is `f:v`, as COMPLEX spells it, and no other key generator."""
    return definition.key_generator == "COMPLEX" and len(definition.key_fields) == 1


def layout(definition: Definition, spec: TableSpec, schema: str, *, created: bool) -> HudiLayout:
    """How files are to be written, by what the table says. `schema`: the Avro schema of its rows."""
    is_plain = len(definition.key_fields) == 1 and not _is_prefixed(definition)
    key_format = "plain" if is_plain else "complex"
    timed = definition.timed(spec.properties)
    return HudiLayout(
        path=plain(spec.path),
        key_fields=definition.key_fields,
        key_format=key_format if definition.key_fields else "coordinates",
        partition_fields=spec.partition_fields,
        partition_terms=spec.partition_terms,
        partition_bounds=spec.partition_bounds,
        hive_style=definition.is_set(HIVE_STYLE),
        url_encode=definition.is_set(URL_ENCODE),
        timed=timed.encoded() if timed is not None else "",
        kafka_columns=spec.kafka_columns,
        target_file_bytes=spec.target_file_bytes,
        ddl=spec.ddl,
        mode=spec.mode,
        ordering_field=spec.ordering_field,
        bucket_count=spec.bucket_count,
        source_position=spec.source_position,
        lookup_fields=spec.lookup_fields,
        avro=with_meta_columns(schema),
        created=created,
    )


def widened(layout: HudiLayout, ddl: str) -> HudiLayout:
    """For a record of these columns, which are wide enough for those of before."""
    columns = columns_of(replace(layout, ddl=ddl))
    name = str(json.loads(layout.avro).get("namespace") or "").removeprefix(NAMESPACE)
    return replace(layout, ddl=ddl, avro=evolve(layout.avro, to_avro(columns, name), layout))


def with_meta_columns(schema: str) -> str:
    """An Avro schema with Hudi's meta columns first, as it stands in log files."""
    record = json.loads(schema)
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    own = [field for field in record["fields"] if not field["name"].startswith(META_FIELDS_PREFIX)]
    return json.dumps({**record, "fields": [*meta, *own]}, separators=(",", ":"))


def fixed_properties(definition: Definition, schema: str, spec: TableSpec) -> dict[str, str]:
    """What the write client must be told about this table, besides the protocol's own properties."""
    index: dict[str, str] = {}
    if spec.mode == UPSERT:
        index = index_properties(definition.key_fields, spec.bucket_count)
        index["hoodie.table.type"] = MODES[UPSERT].table_type  # for the check of the concurrency mode
        index["hoodie.compact.inline"] = "false"  # else Hudi compacts within every fifth commit
        index[AUTO_ARCHIVE] = "false"  # its Java client fails at it: see table/hudi/upkeep/cleaning.py
    return {
        **index,
        **kept_of_generator({**spec.properties, **definition.properties}),
        "hoodie.table.name": definition.name,
        "hoodie.avro.schema": schema,
        "hoodie.datasource.write.recordkey.field": ",".join(definition.key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(definition.written_partition_fields),
        "hoodie.datasource.write.keygenerator.class": KEY_GENERATORS[definition.key_generator],
        "hoodie.write.table.version": str(definition.version),
        HIVE_STYLE: str(definition.is_set(HIVE_STYLE)).lower(),
        URL_ENCODE: str(definition.is_set(URL_ENCODE)).lower(),
    }


def schema_of(spec: TableSpec) -> str:
    """The table's Avro schema by the configuration, without Hudi's meta fields."""
    try:
        columns = columns_of(spec)
    except SchemaError as why:
        raise Contradiction(str(why)) from why
    for name in (*spec.key_fields, *spec.partition_fields, *filter(None, [spec.ordering_field])):
        if name not in columns.names:
            raise Contradiction(
                f"table.key, table.partition_by and table.ordering: record.schema has no field {name}"
            )
    return to_avro(columns, spec.name)


def with_the_tables(definition: Definition, spec: TableSpec) -> TableSpec:
    """With what the table has beside the configuration's columns, where those that workers meet are added."""
    if not spec.follows or not definition.schema:
        return spec
    try:
        has = ddl_of(record_schema(from_avro(definition.schema), made=made_columns(spec)))
        return replace(spec, ddl=united_ddl(spec.ddl, [has], fixed=fixed_columns(spec)))
    except SchemaError as why:
        raise Contradiction(f"table {spec.path}: {why}") from why


def fixed_columns(spec: TableSpec) -> tuple[str, ...]:
    """Those by which rows and files are found."""
    found = (*spec.key_fields, *record_fields(spec), *filter(None, [spec.ordering_field]))
    return tuple(dict.fromkeys(found))


def plain_spec(spec: TableSpec) -> TableSpec:
    """`spec` with its path checked, as `plain` has it. Raises `Refused` for what no Hudi table can be."""
    path = plain(spec.path)
    if PATTERN in path:
        raise Refused(
            f"table.path {path}: it holds '*', and Spark reads no Hudi table at such a path: take it out"
        )
    on_hdfs = path.startswith(f"{HDFS}://")
    strange = (GLOBS if on_hdfs else NOT_IN_ADDRESSES).search(path) if "://" in path else None
    if strange is not None:
        whose = (
            "Hadoop or Spark would interpret"
            if on_hdfs
            else "Hudi's lock of tables in object stores cannot have"
        )
        raise Refused(
            f"table.path {path}: it holds {strange[0]!r}, which {whose}: use letters, digits and -_.=+@,~"
        )
    return replace(spec, path=path)


def impatient(spec: TableSpec) -> TableSpec:
    """As the driver asks its store: also under the table lock, which must not end before the answer is there.
    Whoever asks, asks again.
    """
    if spec.storage is None:
        return spec
    patience_s = min(spec.storage.patience_s, PATIENCE_S)
    return replace(spec, storage=replace(spec.storage, patience_s=patience_s))


def _demands(definition: Definition, spec: TableSpec) -> list[tuple[str, Any, Any, str]]:
    """(property, what the table has, what we need, what to do)."""
    get = definition.properties.get
    elsewhere, terms = "write to another path", terms_of(spec)
    return [
        *(_demands_of_upserts(definition, spec) if spec.mode == UPSERT else []),
        (
            "hoodie.table.type",
            get("hoodie.table.type", "COPY_ON_WRITE"),
            MODES[spec.mode].table_type,
            "say the table's kind (COPY_ON_WRITE: insert, MERGE_ON_READ: upsert), or write to another path",
        ),
        (
            "hoodie.table.base.file.format",
            get("hoodie.table.base.file.format", "PARQUET").upper(),
            "PARQUET",
            elsewhere,
        ),
        (
            "hoodie.table.multiple.base.file.formats.enable",
            definition.is_set("hoodie.table.multiple.base.file.formats.enable"),
            False,
            elsewhere,
        ),
        (
            "hoodie.populate.meta.fields",
            definition.is_set("hoodie.populate.meta.fields", default=True),
            True,
            elsewhere,
        ),
        (
            "hoodie.datasource.write.drop.partition.columns",
            definition.is_set("hoodie.datasource.write.drop.partition.columns"),
            False,
            elsewhere,
        ),
        (SLASHED, definition.is_set(SLASHED), False, elsewhere),
        (
            "hoodie.table.recordkey.fields",
            definition.key_fields,
            tuple(spec.key_fields),
            "set table.key to the table's",
        ),
        (
            "hoodie.table.partition.fields",
            definition.partition_fields,
            tuple(spec.partition_fields),
            "set table.partition_by to the table's",
        ),
        (TERMS, get(TERMS, terms), terms, "set table.partition_by to the table's"),
    ]


def _demands_of_upserts(definition: Definition, spec: TableSpec) -> list[tuple[str, Any, Any, str]]:
    get = definition.properties.get
    elsewhere = "write to another path"
    ordering = (spec.ordering_field,) if spec.ordering_field else ()
    ordering_advice = "set table.ordering to the table's"
    if spec.source_position:
        ordering_advice = elsewhere
    return [
        ("hoodie.table.ordering.fields", definition.ordering_fields, ordering, ordering_advice),
        (
            "hoodie.record.merge.mode",
            get("hoodie.record.merge.mode", merge_mode(",".join(definition.ordering_fields))),
            merge_mode(spec.ordering_field),
            elsewhere,
        ),
        (INDEX_TYPE, get(INDEX_TYPE, ""), "BUCKET", elsewhere),
        (BUCKET_ENGINE, get(BUCKET_ENGINE, "SIMPLE").upper(), "SIMPLE", elsewhere),
        (BUCKETS, get(BUCKETS, ""), str(spec.bucket_count), "set table.buckets to the table's"),
    ]


def _fields(text: str) -> tuple[str, ...]:
    return tuple(field.strip() for field in text.split(",") if field.strip())


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) if value else "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)
