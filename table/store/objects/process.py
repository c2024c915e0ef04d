"""obstore's threads belong to the process that uses it first: a fork of that process has none of them, and
would wait for its first answer for ever.
"""

from __future__ import annotations

import os

_home = 0


def stay_here() -> None:
    """Raises `RuntimeError` in a process that was forked from one that has used an object store already."""
    global _home
    if not _home:
        _home = os.getpid()
    elif _home != os.getpid():
        raise RuntimeError(
            "this process was forked from one that has used an object store: use it in one of the two, or "
            "start a new one"
        )
