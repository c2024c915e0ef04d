"""What hypothesis draws: every target's cases, and inputs that the targets' own chance would not think of.

A target's cases are made by the same code as in a soak, from chance that hypothesis controls, so that what
fails is shrunk.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tests.fuzz.target import Target

settings.register_profile("test", derandomize=True, deadline=None, max_examples=100, database=None)
PROFILE = settings.get_profile("test")
SIZE = 6


def cases(target: Target, size: int = SIZE) -> st.SearchStrategy[Any]:
    """A target's cases of about `size` inputs."""
    return st.randoms(use_true_random=False).map(lambda random: target.make(random, size))


names = st.sampled_from((*"abcdefg", "id", "", "é")) | st.text(max_size=3)
numbers = st.integers() | st.floats() | st.integers(-(2**64), 2**64)
jsons = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def values(draw: st.DrawFn) -> bytes | None:
    """A record's value: any JSON, spelled in any way; any bytes; now and then none."""
    match draw(st.integers(0, 7)):
        case 0:
            return None
        case 1:
            return draw(st.binary(max_size=12))
        case 2:
            return draw(st.text(max_size=12)).encode("utf-8", "surrogatepass")
        case 3:
            return _spelled(draw, draw(jsons))
        case _:
            return _spelled(draw, draw(st.dictionaries(names, jsons, max_size=4)))


def _spelled(draw: st.DrawFn, document: Any) -> bytes:
    text = json.dumps(
        document,
        indent=draw(st.sampled_from((None, None, 1))),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from(((",", ":"), (" ,\n", ": ")))),
    )
    return text.encode("utf-8", "surrogatepass")


tables = st.recursive(
    st.booleans() | numbers | st.text(max_size=6) | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
"""What a TOML document may hold."""


def toml(value: Any) -> str:
    """The value as TOML spells it, tables in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value).replace("\\ud", "\\\\ud").replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(name)} = {toml(inner)}" for name, inner in value.items()) + "}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)
