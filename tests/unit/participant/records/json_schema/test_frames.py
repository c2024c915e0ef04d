"""What stands before values, all at once: the same as of each by itself."""

from __future__ import annotations

import random

from participant.records.by_schema.framing import confluent
from participant.records.by_schema.misread import Misread
from participant.records.json_schema.frames import frames_of, without
from participant.records.raw import Values

GUID = bytes(range(16))
FRAMES = [
    b"\0\0\0\0\1",
    b"\0\0\0\0\2",
    b"\0\xff\xff\xff\xff",
    b"\0\0\0\1",
    b"\1" + GUID,
    b"\1" + GUID[:15],
    b"",
    b"\2\0\0\0\1",
]


def test_every_value_is_told_apart_as_it_would_be_alone() -> None:
    source = random.Random(1)
    for _ in range(200):
        values = [
            None if source.random() < 0.1 else source.choice(FRAMES) + source.choice([b"", b"{}", b"\n\n"])
            for _ in range(source.randrange(8))
        ]
        named = [source.choice([None, *FRAMES]) for _ in values]
        headers = named if source.random() < 0.3 else None
        held = Values.of(values)
        frames = frames_of(held, headers)
        bare = without(held, frames.cuts)
        for place, value in enumerate(values):
            try:
                if not value:
                    raise Misread("null value" if value is None else "empty value")
                key, at = confluent(value, headers[place] if headers else None)
            except Misread as misread:
                assert (frames.codes[place], frames.reasons[place]) == (-1, str(misread))
                continue
            assert frames.keys[frames.codes[place]] == key and place not in frames.reasons
            assert bare[place] == value[at:]
