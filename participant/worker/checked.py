"""A decoder that stops where its schema registry was reset, and limits what one batch asks of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from participant.records.by_schema.framing import BY_ID, ID_BYTES, VALUE_HEADER, SchemaKey, confluent
from participant.records.by_schema.misread import Misread
from participant.records.errors import SchemasPending
from participant.records.headers import first
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from participant.records.registry.session import RegistrySession

MARK = VALUE_HEADER.encode()


class CheckedDecoder:
    """See `Decoder`. `session`: what is known of the registry that `decoder` asks."""

    def __init__(self, decoder: Decoder, session: RegistrySession) -> None:
        self._decoder, self._session = decoder, session

    @property
    def news(self) -> str:
        """As of `FollowingDecoder`."""
        return str(getattr(self._decoder, "news", ""))

    def decode(self, batch: RawBatch) -> Decoded:
        """See `Decoder`. Raises `SchemasPending` where a batch names more new schemas than are asked for."""
        if self._session.reset and len(batch):
            return Decoded(table=pa.table({}), stop=(0, self._session.reset))
        self._session.begin_batch()
        try:
            decoded = self._decoder.decode(batch)
        except SchemasPending:
            self._session.want(_ids(batch.values))
            raise
        if len(batch):
            begin, end = int(batch.offsets[0]), int(batch.offsets[-1]) + 1
            self._session.decoded(batch.partition, begin, end, _keys(batch))
        return decoded


def _ids(values: Values) -> list[int]:
    """The ids that values begin with, each once, in ascending order."""
    text = np.frombuffer(values.data, dtype=np.uint8)
    starts = values.starts[:-1][np.diff(values.starts) > 1 + ID_BYTES]
    starts = starts[text[starts] == BY_ID] + 1
    numbers = np.zeros(len(starts), dtype=np.int64)
    for place in range(ID_BYTES):
        numbers = numbers << 8 | text[starts + place]
    found: list[int] = np.unique(numbers).tolist()
    return found


def _keys(batch: RawBatch) -> set[int | str]:
    """The schemas that the first and the last record name: most batches have no other."""
    found: set[SchemaKey] = set()
    for place in {0, len(batch) - 1}:
        value = batch.values[place]
        headers = batch.headers[place] if batch.headers is not None else None
        try:
            found.add(confluent(value or b"", first(headers, VALUE_HEADER, MARK))[0])
        except Misread:
            continue
    return {key for key in found if not isinstance(key, bytes)}
