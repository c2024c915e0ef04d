"""Where a table is, as its configuration says it, and which kinds of storage there are. Read here alone.

To add one: a module beside this one, and a line in `STORES`. What a line names is imported when it is used.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pkgutil import resolve_name
from urllib.parse import urlsplit

from table.errors import Refused
from table.store.port import Store

LOCAL = "file"
STORES: Mapping[str, str] = {LOCAL: "table.store.local:local_store"}
"""Scheme -> what makes the store whose root an address is, as `module:function`. It is given the address and
the setting that has it, and raises `Refused` where the address is none of its own.
"""


def local_path(path: str, *, setting: str = "table.path") -> str:
    """The plain path of a `file://` address or of an absolute path, which a setting gives. Raises `Refused`
    for anything else.
    """
    address = urlsplit(path) if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", path) else None
    if address is not None and address.scheme != "file":
        raise Refused(
            f"{setting} {path}: {address.scheme}:// is not supported; give a path that begins with file://"
        )
    if address is not None and address.netloc not in ("", "localhost"):
        raise Refused(f"{setting} {path}: it names the host {address.netloc}; write file:/// and the path")
    plain = path if address is None else path.split(":", 1)[1].removeprefix("//").removeprefix("localhost")
    normal = posixpath.normpath("/" + plain.strip("/"))  # by its text, as Hadoop does it
    if not plain.startswith("/") or normal == "/":
        raise Refused(f"{setting} {path}: it must be absolute, such as file:///data/lake/events")
    return normal


def store_at(path: str, *, setting: str = "table.path") -> Store:
    """The store whose root is this path or address. Raises `Refused` where there is none for it."""
    scheme = path.partition("://")[0]
    made: Store = resolve_name(STORES.get(scheme, STORES[LOCAL]))(path, setting)
    return made
