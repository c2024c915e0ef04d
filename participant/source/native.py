"""Reading without a Python object per record: the Python side of participant/source/_fetcher.c.

The module is optional. It is compiled where the package is installed and a C compiler is at hand, and opens
the librdkafka that confluent-kafka has loaded, so that no second copy is linked. Where anything about that is
not as expected, the plain fetcher reads instead, and `lockstep validate` says why.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import confluent_kafka
import numpy as np

from control_topic.messages import SourcePartition
from participant.errors import SourceUnreadable
from participant.records.raw import RawBatch, Values
from participant.source.fetcher import (
    BATCH_BYTES,
    BATCH_RECORDS,
    BOUNDS_S,
    Consumed,
    Fetcher,
    Notice,
    PlainFetcher,
)

INTERFACE = 6
"""The number in participant/source/_fetcher.c of what is passed between it and this module."""
VERSION_MIN = 0x02000000
MAPS = Path("/proc/self/maps")


class NativeFetcher:
    """A client of librdkafka of our own. Configured by texts only: callbacks would need the interpreter.

    `tombstone_keys`: whether batches have the keys of records whose value is null. `whole`: whether they have
    the keys and headers of all.
    """

    name = "native"

    def __init__(
        self,
        module: ModuleType,
        settings: Mapping[str, object],
        *,
        tombstone_keys: bool = False,
        whole: bool = False,
        records_max: int = BATCH_RECORDS,
    ) -> None:
        self._records_max = records_max
        self._reading: set[SourcePartition] = set()
        self._failure: type[Exception] = module.Failure
        try:
            self._reader = module.Reader(texts(settings), tombstone_keys, whole)
        except self._failure as error:
            raise SourceUnreadable(f"the source's client cannot be made: {error}") from error

    def read_from(self, partition: SourcePartition, offset: int) -> None:
        self.drop(partition)
        try:
            self._reader.assign(partition.topic, partition.number, offset)
        except self._failure as error:
            raise SourceUnreadable(f"{partition} cannot be read from offset {offset}: {error}") from error
        self._reading.add(partition)
        self.resume([partition])  # the client remembers a pause over that

    def drop(self, partition: SourcePartition) -> None:
        if partition not in self._reading:
            return
        try:
            self._reader.unassign(partition.topic, partition.number)
        except self._failure as error:
            raise SourceUnreadable(f"{partition} cannot be given up: {error}") from error
        self._reading.discard(partition)

    def pause(self, partitions: Iterable[SourcePartition]) -> None:
        self._set_paused(partitions, True)

    def resume(self, partitions: Iterable[SourcePartition]) -> None:
        self._set_paused(partitions, False)

    def _set_paused(self, partitions: Iterable[SourcePartition], paused: bool) -> None:
        for partition in partitions:
            if partition in self._reading:
                self._reader.pause(partition.topic, partition.number, paused)

    def fetch(self, timeout_s: float) -> Consumed:
        try:
            batches, notices = self._reader.fetch(self._records_max, BATCH_BYTES, int(timeout_s * 1_000))
        except self._failure as error:
            raise SourceUnreadable(f"the source consumer failed for good: {error}") from error
        return Consumed(
            batches=[_batch(*one) for one in batches],
            notices=[
                Notice(partition=SourcePartition(topic, number), code=code, text=text, offset=offset)
                for topic, number, code, text, offset in notices
            ],
        )

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        try:
            low, high = self._reader.bounds(partition.topic, partition.number, BOUNDS_S * 1_000)
        except self._failure as error:
            raise SourceUnreadable(f"{partition}: the log's bounds cannot be read: {error}") from error
        return low, high

    def too_large(self) -> str:
        text: str = self._reader.too_large()
        return text

    def close(self) -> None:
        self._reader.close()


def _batch(
    topic: str,
    number: int,
    _count: int,
    data: bytes,
    starts: bytes,
    offsets: bytes,
    timestamps_ms: bytes,
    nulls: bytes | None,
    keys: dict[int, bytes | None] | None,
    key_data: bytes | None,
    key_starts: bytes | None,
    key_nulls: bytes | None,
    header_data: bytes | None,
    header_starts: bytes | None,
) -> RawBatch:
    return RawBatch(
        partition=SourcePartition(topic, number),
        offsets=np.frombuffer(offsets, dtype=np.int64),
        timestamps_ms=np.frombuffer(timestamps_ms, dtype=np.int64),
        values=_column(data, starts, nulls),
        keys=keys or {},
        record_keys=_column(key_data, key_starts, key_nulls) if key_data is not None and key_starts else None,
        headers=_column(header_data, header_starts, None)
        if header_data is not None and header_starts
        else None,
    )


def _column(data: bytes, starts: bytes, nulls: bytes | None) -> Values:
    return Values(
        data=data,
        starts=np.frombuffer(starts, dtype=np.int64),
        nulls=None if nulls is None else np.frombuffer(nulls, dtype=np.bool_),
    )


def texts(settings: Mapping[str, object]) -> dict[str, str]:
    """librdkafka's settings as it takes them itself."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def open_fetcher(
    settings: Mapping[str, object],
    reader: str = "auto",
    *,
    tombstone_keys: bool = False,
    whole: bool = False,
    records_max: int = BATCH_RECORDS,
) -> Fetcher:
    """The fetcher for these settings of librdkafka; `reader` is `source.reader` of the configuration.

    `tombstone_keys`: whether its batches have `keys`, those of the records whose value is null. `whole`:
    whether they have `record_keys` and `headers`, those of all records. `records_max`: in one fetch.
    Raises `SourceUnreadable` where the native one is asked for and cannot be had.
    """
    why_not = missing(settings) if reader != "plain" else "the configuration asks for it"
    if not why_not:
        module = native_module()
        return NativeFetcher(
            module, settings, tombstone_keys=tombstone_keys, whole=whole, records_max=records_max
        )
    if reader == "native":
        raise SourceUnreadable(f'source.reader = "native", but {why_not}')
    return PlainFetcher(settings, tombstone_keys=tombstone_keys, whole=whole, records_max=records_max)


def missing(settings: Mapping[str, object]) -> str:
    """Why the native fetcher cannot be had with these settings; empty where it can."""
    mechanism = settings.get("sasl.mechanisms", settings.get("sasl.mechanism", ""))
    if str(mechanism).upper() == "OAUTHBEARER":
        return "a login by OAUTHBEARER needs the plain reader"
    try:
        native_module()
    except (ImportError, SourceUnreadable) as error:
        return str(error)
    return ""


@cache
def native_module() -> ModuleType:
    """The compiled module, with librdkafka's functions found. Raises `SourceUnreadable` or `ImportError`."""
    try:
        module = importlib.import_module("participant.source._fetcher")
    except ImportError:
        raise SourceUnreadable(
            "participant.source._fetcher was not compiled when Lockstep was installed"
        ) from None
    if getattr(module, "INTERFACE", 1) != INTERFACE:
        raise SourceUnreadable(
            "participant.source._fetcher was compiled for another version: install Lockstep again"
        )
    try:
        version = module.load(_librdkafka())
    except module.Failure as error:
        raise SourceUnreadable(str(error)) from None
    if version < VERSION_MIN:
        raise SourceUnreadable(f"librdkafka is too old ({confluent_kafka.libversion()[0]})")
    return module


def _librdkafka() -> str:
    """Where the librdkafka that confluent-kafka has loaded came from."""
    if not MAPS.exists():
        raise SourceUnreadable("only Linux says which libraries a process has loaded")
    for line in MAPS.read_text().splitlines():
        path = line.partition("/")[2]
        if Path(path).name.startswith("librdkafka") and ".so" in path:
            return f"/{path}"
    raise SourceUnreadable("confluent-kafka was built with a librdkafka inside")
