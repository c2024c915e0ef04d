"""Change events as Debezium's connectors write them, and what the decoder says of them, for its tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.decoder import Changes, DebeziumDecoder
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.json_decoders import DECODERS, PLAIN

read_by = PLAIN
"""Which decoder of JSON reads events: a test's module may set it."""
PLACE = SourcePartition("server.public.customers", 3)
POSTGRESQL = {"version": "3.2.0.Final", "connector": "postgresql", "snapshot": "false", "txId": 555, "lsn": 7}
BINLOG = {"connector": "mysql", "file": "mysql-bin.000003", "pos": 154, "row": 2, "gtid": None}
SQLSERVER = {
    "connector": "sqlserver",
    "change_lsn": "00000027:00000758:0003",
    "commit_lsn": "00000027:00000758:0005",
    "event_serial_no": 1,
}
ORACLE: dict[str, Any] = {
    "connector": "oracle",
    "scn": "2122185",
    "commit_scn": "2122190",
    "rs_id": "001234.00012345.0124",
}


def batch_of(values: Sequence[bytes | None], first: int = 1_000) -> RawBatch:
    """Offsets with gaps, so that an index is never mistaken for an offset."""
    offsets = np.arange(len(values), dtype=np.int64) * 7 + first
    return RawBatch(partition=PLACE, offsets=offsets, timestamps_ms=offsets + 5, values=Values.of(values))


def event(op: str | None, *, wrapped: bool = False, source: Any = POSTGRESQL, **fields: Any) -> bytes:
    """A change event as a connector writes it; `wrapped`: with its schema."""
    said = {"before": None, "after": None, **fields, "source": source, "op": op, "ts_ms": 1559033904863}
    whole = {"schema": {"type": "struct", "fields": [{"field": "op"}]}, "payload": said}
    return json.dumps(whole if wrapped else said).encode()


def binlog_change(op: str, name: str, place: int, minute: int, amount: int = 0) -> tuple[bytes, bytes]:
    """A change at `place` of its server's binlogs, 100 to a file, made in that minute: (key, value)."""
    row = {"id": name, "region": "a", "amount": amount, "ts": minute, "deleted": None}
    sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    source = {
        "connector": "mysql",
        "name": "shop",
        "ts_ms": 60_000 * minute,
        "server_id": 1 + (place < 10_000),
    }
    source |= {"file": f"bin.{place // 100:06}", "pos": place % 100}
    return json.dumps({"id": name}).encode(), json.dumps({"op": op, "source": source, **sides}).encode()


def created(source: Any) -> bytes:
    return event("c", after={"id": 1}, source=source)


def decoder(ddl: str) -> DebeziumDecoder:
    return DebeziumDecoder(parse_ddl(ddl), DECODERS[read_by])


def decode(ddl: str, *values: bytes | None) -> Changes:
    return decoder(ddl).decode(batch_of(values))


def ids(changes: Changes) -> list[Any]:
    found: list[Any] = changes.rows.column("id").to_pylist()
    return found


def reasons(changes: Changes) -> dict[int, str]:
    return {reject.index: reject.reason for reject in changes.rejects}


def reason(ddl: str, value: bytes) -> str:
    """Why one value is refused, beside a good one."""
    changes = decode(ddl, event("c", after={"id": 1}), value)
    assert changes.kept.tolist() == [0]
    return changes.rejects[0].reason
