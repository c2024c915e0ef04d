"""Generated parts of a document that is written by hand, each between two comments that name it.

A part has lines of its own: `<!-- NAME: begin -->` … `<!-- NAME: end -->`. A span is within a line:
`<!-- n:NAME -->8,000<!-- /n -->`, with `n` for its kind. Markdown shows no comments inside of code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


def fill(document: str, parts: Mapping[str, Callable[[], str]], name_of_it: str) -> str:
    """Put each part between its two comments. Raises `ValueError` where one has no place."""
    for name, part in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        around = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", document, flags=re.DOTALL)
        if len(around) != 2:
            raise ValueError(f"{name_of_it} has no place for its {name}: {begin} … {end}")
        document = f"{around[0]}{begin}\n{part()}\n{end}{around[1]}"
    return document


def fill_spans(document: str, kind: str, value: Callable[[str], str], name_of_it: str) -> str:
    """Put the value of each name into every span of this kind that has the name.

    Raises `ValueError` for a span without its end, and for a name that `value` does not know (`KeyError`).
    """
    span = re.compile(f"<!-- {kind}:([^ ]+) -->([^<]*)<!-- /{kind} -->")
    if len(span.findall(document)) != len(re.findall(f"<!-- {kind}:", document)):
        raise ValueError(f"{name_of_it} has a span {kind} without its end: <!-- /{kind} -->")

    def filled(found: re.Match[str]) -> str:
        try:
            return f"<!-- {kind}:{found[1]} -->{value(found[1])}<!-- /{kind} -->"
        except KeyError as error:
            raise ValueError(f"{name_of_it} has a span {kind} of an unknown name: {found[1]}") from error

    return span.sub(filled, document)
