"""Values in the configuration that name parts of a schema of records."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from lockstep.config.problems import shown

MESSAGE_NAME = re.compile(r"(?=.{1,500}\Z)[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def _message_name(value: str) -> str:
    if value and not MESSAGE_NAME.fullmatch(value):
        raise ValueError(f'{shown(value)} is not the full name of a message, such as "shop.v1.Order"')
    return value


MessageName = Annotated[str, AfterValidator(_message_name)]
"""Of Protobuf, package included; empty for none."""
