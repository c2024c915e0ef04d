"""Shared Key, as Azure's services want requests signed.

Source: Microsoft's REST reference, Authorize with Shared Key, for the Blob service, 2015-02-21 and later: one
rule for both endpoints.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

FIRST = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


def signature(method: str, target: str, headers: Mapping[str, str], *, account: str, key: str) -> str:
    """What stands in `Authorization`. `target`: path and query, as they are sent."""
    given = {name.lower(): value.strip() for name, value in headers.items()}
    lines = [method]
    for name in FIRST:
        value = given.get(name, "")
        empty = (name == "content-length" and value == "0") or (name == "date" and "x-ms-date" in given)
        lines.append("" if empty else value)
    lines += [f"{name}:{given[name]}" for name in sorted(given) if name.startswith("x-ms-")]
    asked = urlsplit(target)
    resource = f"/{account}{asked.path}"
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(asked.query, keep_blank_values=True):
        query.setdefault(name.lower(), []).append(value)
    resource += "".join(f"\n{name}:{','.join(sorted(query[name]))}" for name in sorted(query))
    text = "\n".join([*lines, resource]).encode()
    made = hmac.new(base64.b64decode(key), text, hashlib.sha256).digest()
    return f"SharedKey {account}:{base64.b64encode(made).decode()}"
