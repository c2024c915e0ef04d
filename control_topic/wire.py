"""What a body would become, before it becomes it: protobuf's wire form, walked. Pure.

An entry of two bytes takes fifty and more once it is read, a number of one byte eight. So entries are
counted, and what they weigh, before protobuf makes anything of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from control_topic.bounds import ENTRIES_MAX, LISTS_BYTES_MAX, RAW_BYTES_MAX, few_enough
from control_topic.errors import Malformed
from control_topic.stubs import control_pb2 as pb

_NUMBERS = {name: field.number for name, field in pb.Body.DESCRIPTOR.fields_by_name.items()}
_WITH_LISTS = frozenset(
    _NUMBERS[name]
    for name in ("participant_join", "participant_leave", "start_commit", "write_status", "ack_commit")
)
_FILES = (_NUMBERS["write_status"], pb.WriteStatus.FILES_FIELD_NUMBER)


def check_size(body: bytes) -> None:
    """Of a body of which nothing was made yet. Raises `Malformed` for more than anybody could say."""
    held = list(islice(fields(body, 0, len(body)), 2))
    if len(held) > 1:
        raise Malformed(f"a body of {len(body)} bytes that holds more than one message")
    for kind, begin, end in held:
        if kind not in _WITH_LISTS:
            few_enough(end - begin, RAW_BYTES_MAX, "bytes of a message without lists")
            continue
        lists_bytes = 0
        for entry, (field, first, last) in enumerate(fields(body, begin, end), start=1):
            few_enough(entry, ENTRIES_MAX, "entries of a body")
            lists_bytes += last - first if (kind, field) != _FILES else 0
            few_enough(lists_bytes, LISTS_BYTES_MAX, "bytes of lists")


def fields(raw: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, where its content begins, where it ends) of each field of a protobuf message, in order.

    Raises `Malformed` for what is no message. Source: https://protobuf.dev/programming-guides/encoding/.
    """
    while start < end:
        tag, begin = _varint(raw, start, end)
        match tag & 7:
            case 0:
                _, start = _varint(raw, begin, end)
            case 1:
                start = begin + 8
            case 2:
                size_bytes, begin = _varint(raw, begin, end)
                start = begin + size_bytes
            case 5:
                start = begin + 4
            case kind:
                raise Malformed(f"{end} bytes that are not a protobuf message: a field of kind {kind}")
        if start > end:
            raise Malformed(f"{end} bytes that are not a protobuf message: a field ends behind them")
        yield tag >> 3, begin, start


def _varint(raw: bytes, start: int, end: int) -> tuple[int, int]:
    value = 0
    for place in range(start, min(end, start + 10)):
        value |= (raw[place] & 0x7F) << (7 * (place - start))
        if raw[place] < 0x80:
            return value, place + 1
    raise Malformed(f"{end} bytes that are not a protobuf message: a number does not end")
