"""Values in the configuration that name parts of a schema of records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from lockstep.config.problems import shown
from participant.records.placeholder import HEX, placeholder_bytes
from participant.records.sources import parse

MESSAGE_NAME = re.compile(r"(?=.{1,500}\Z)[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def _message_name(value: str) -> str:
    if value and not MESSAGE_NAME.fullmatch(value):
        raise ValueError(f'{shown(value)} is not the full name of a message, such as "shop.v1.Order"')
    return value


TOPIC_IN_SUBJECT = "{topic}"
SUBJECTS_MAX, SUBJECT_CHARS_MAX = 100, 500


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _subjects(value: tuple[str, ...]) -> tuple[str, ...]:
    """Names, in which a source topic's may stand."""
    if not 1 <= len(value) <= SUBJECTS_MAX:
        raise ValueError(f"{len(value)} subjects are listed, and there may be 1 to {SUBJECTS_MAX}")
    for name in value:
        bare = name.replace(TOPIC_IN_SUBJECT, "t")
        if not bare.strip() or len(name) > SUBJECT_CHARS_MAX or "{" in bare or "}" in bare:
            raise ValueError(
                f"{shown(name)} is no subject: write its name, in which {{topic}} stands for the source "
                'topic, as in "{topic}-value" or "shop.v1.Order"'
            )
    return value


Subjects = Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_subjects)]
"""Of a schema registry."""

COLUMNS_MAX = 10_000


def _columns(value: object) -> object:
    """Where columns come from: each is understood; whether it can be is the schema's to say."""
    if not isinstance(value, Mapping):
        raise ValueError('not a table of columns: write { city = "value.address.city" }')
    if len(value) > COLUMNS_MAX:
        raise ValueError(f"{len(value)} columns, at most {COLUMNS_MAX} are allowed")
    for name, spelled in value.items():
        if not isinstance(spelled, str):
            raise ValueError(f'column {name} is {shown(spelled)}: write where it comes from, "value.name"')
        try:
            parse(spelled)
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from None
    return dict(value)


Columns = Annotated[dict[str, str], BeforeValidator(_columns)]
MessageName = Annotated[str, AfterValidator(_message_name)]
"""Of Protobuf, package included; empty for none."""

PLACEHOLDER_CHARS_MAX = 1_000


def _placeholder(value: str) -> str:
    if len(value) > PLACEHOLDER_CHARS_MAX:
        raise ValueError(f"{len(value)} characters, at most {PLACEHOLDER_CHARS_MAX} are allowed")
    try:
        is_empty = not placeholder_bytes(value)
    except ValueError:
        raise ValueError(
            f"{shown(value)}: behind {HEX} write hexadecimal digits, two for each byte"
        ) from None
    if value and is_empty:
        raise ValueError(f"{shown(value)} has no byte: leave it empty for no placeholder")
    return value


UnavailableValue = Annotated[str, AfterValidator(_placeholder)]
"""A connector's placeholder for values that an event lacks; empty for none."""
