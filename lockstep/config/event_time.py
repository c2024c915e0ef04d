"""Whether event times can come from where `record.event_time` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockstep.config.problems import Problem, no_field
from table.watermark import KAFKA_TIMESTAMP

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.config.record_section import RecordSection


def check_event_time(record: RecordSection, columns: pa.Schema) -> Iterator[Problem]:
    """`columns`: those of `record.schema`."""
    name = record.event_time
    if not name or name == KAFKA_TIMESTAMP:
        return
    from participant.records.event_time import scale_of
    from table.schema import ddl_name

    settings = ("record.event_time", "record.schema")
    if name not in columns.names:
        yield Problem(settings=settings, sentence=no_field(name, [*columns.names, KAFKA_TIMESTAMP]))
        return
    kind = columns.field(name).type
    if scale_of(kind, record.event_time_unit) is None:
        sentence = f"{name} is {ddl_name(kind)}: an event time is TIMESTAMP, TIMESTAMP_NTZ, DATE or BIGINT"
        yield Problem(settings=settings, sentence=sentence)
