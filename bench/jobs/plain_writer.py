"""One process of the plain writer: source partitions in, parquet files out. No protocol, no group, no table.

One argument: a JSON file, as `bench/rivals/plain_writer.py` writes it. It says `ready` as a file, waits for
`go`, and then leaves a line for every round of files that it finished.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.rivals.plain_reader import batches
from participant.records.json.native import row_decoder
from participant.records.raw import RawBatch
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.shaping import InsertShaper
from table.hudi.layout import HudiLayout
from table.schema import table_schema
from table.store.location import store_at

QUEUED_BATCHES_MAX = 4
GO_TIMEOUT_S = 120.0
GET_TIMEOUT_S = 120.0
POLL_S = 0.01
LINGER_S = 1.0
"""A last look at what this process used finds it alive."""

Item = RawBatch | BaseException | None
"""None ends it well."""


class _Reader:
    """Reads on a thread of its own, as Lockstep's workers do."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.consume_s = 0.0
        self._task = task
        self._queue: queue.Queue[Item] = queue.Queue(QUEUED_BATCHES_MAX)
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[RawBatch]:
        while (item := self._queue.get(timeout=GET_TIMEOUT_S)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _run(self) -> None:
        task = self._task
        ends = {int(number): end for number, end in task["ends"].items()}
        began = time.monotonic()
        try:
            for batch in batches(task["bootstrap_servers"], task["topic"], ends):
                self.consume_s += time.monotonic() - began
                self._queue.put(batch, timeout=GET_TIMEOUT_S)
                began = time.monotonic()
            self._queue.put(None, timeout=GET_TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - raised again where it is read
            self._queue.put(error, timeout=GET_TIMEOUT_S)


class _Rounds:
    """Files of one interval after the other, and what each round took."""

    def __init__(self, task: dict[str, Any]) -> None:
        layout = HudiLayout(
            path=task["folder"],
            key_fields=(task["key"],),
            key_format="plain",
            partition_fields=(task["partition_by"],) if task["partition_by"] else (),
            hive_style=False,
            url_encode=False,
            kafka_columns=True,
            target_file_bytes=task["target_file_bytes"],
            ddl=task["schema"],
        )
        self._task, self._layout = task, layout
        self._schema = table_schema(task["schema"], True)
        self._decoder, self._shaper = row_decoder(self._schema), InsertShaper(layout, self._schema)
        self._writer: TransactionWriter | None = None
        self._rows = 0
        self.seconds = dict.fromkeys(("decode", "derive", "encode", "upload", "wait"), 0.0)

    def take(self, batch: RawBatch) -> None:
        decoded = self._timed("decode", lambda: self._decoder.decode(batch))
        derived = self._timed("derive", lambda: self._shaper.shape(decoded.rows(batch)))
        if self._writer is None:
            self._writer = self._open()
        writer = self._writer
        self._written(writer, lambda: writer.write(derived))
        self._rows += derived.table.num_rows

    def finish(self, consume_s: float) -> str:
        """Close the round's files; the line that tells of it."""
        if self._writer is not None:
            self._written(self._writer, self._writer.close)
        rows, self._rows, self._writer = self._rows, 0, None
        at_ms = time.time_ns() // 1_000_000
        return json.dumps({"at_ms": at_ms, "rows": rows, "seconds": self.seconds | {"consume": consume_s}})

    def waited(self, began: float) -> None:
        self.seconds["wait"] += time.monotonic() - began

    def _written(self, writer: TransactionWriter, call: Any) -> None:
        """Encoding, less what the writer spends on files."""
        uploaded_s = writer.upload_s
        self._timed("encode", call)
        uploaded_s = writer.upload_s - uploaded_s
        self.seconds["encode"] -= uploaded_s
        self.seconds["upload"] += uploaded_s

    def _timed(self, stage: str, call: Any) -> Any:
        began = time.monotonic()
        result = call()
        self.seconds[stage] += time.monotonic() - began
        return result

    def _open(self) -> TransactionWriter:
        task = self._task
        return TransactionWriter(
            store=store_at(task["folder"]),
            layout=self._layout,
            schema=self._schema,
            instant=datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17],
            writer_number=task["number"],
            incarnation=f"plain-{task['number']}",
            pending_bytes_max=task["memory_bytes"] // 4,
            held_bytes_max=task["memory_bytes"] // 16,
            new_uuid=uuid4,
        )


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rounds = _Rounds(task)
    Path(task["ready"]).touch()
    until = time.monotonic() + GO_TIMEOUT_S
    while not Path(task["go"]).exists():
        if time.monotonic() > until:
            raise SystemExit("nobody said go")
        time.sleep(POLL_S)
    reader = _Reader(task)
    with open(task["rounds"], "w", encoding="utf-8", buffering=1) as lines:
        due = began = time.monotonic()
        due += task["interval_s"]
        for batch in reader:
            rounds.waited(began)
            rounds.take(batch)
            if time.monotonic() >= due:
                lines.write(rounds.finish(reader.consume_s) + "\n")
                due = time.monotonic() + task["interval_s"]
            began = time.monotonic()
        lines.write(rounds.finish(reader.consume_s) + "\n")
    time.sleep(LINGER_S)


if __name__ == "__main__":
    main()
