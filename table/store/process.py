"""The threads of obstore and of hdfs-native belong to the process that uses them first: a fork of it has none
of them, and would wait for its first answer for ever.
"""

from __future__ import annotations

import os

_home = 0


def stay_here() -> None:
    """Raises `RuntimeError` in a process that was forked from one that has used such a store already."""
    global _home
    if not _home:
        _home = os.getpid()
    elif _home != os.getpid():
        raise RuntimeError(
            "this process was forked from one that has used an object store or HDFS: use it in one of "
            "the two, or start a new one"
        )
