"""Metrics of several pipelines as one text: a family's lines stand together, its head once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"
END = b"# EOF"


def wants_openmetrics(accept: str) -> bool:
    """What a scraper's Accept header says."""
    return OPENMETRICS in accept


def merged(texts: Sequence[bytes]) -> bytes:
    """One exposition out of several of the same form."""
    if len(texts) == 1:
        return texts[0]
    heads: dict[bytes, list[bytes]] = {}
    samples: dict[bytes, list[bytes]] = {}
    ended = False
    for text in texts:
        family = b""
        for line in text.split(b"\n"):  # splitlines() would break at a \r inside a label, too
            if line == END:
                ended = True
            elif line.startswith((b"# HELP ", b"# TYPE ", b"# UNIT ")):
                family = line.split(b" ", 3)[2]
                head = heads.setdefault(family, [])
                samples.setdefault(family, [])
                if line not in head:
                    head.append(line)
            elif line:
                samples.setdefault(family, []).append(line)
    lines = [line for family in samples for line in (*heads.get(family, ()), *samples[family])]
    return b"\n".join([*lines, *([END] if ended else ()), b""])
