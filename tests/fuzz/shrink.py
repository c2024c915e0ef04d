"""A failing case made smaller, as long as it fails in the same way. Each try is a process of its own."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.target import Target, Wrong

TRY_S = 20
MEMORY_BYTES_MAX = 8 * 1024**3
"""A process that asks for more fails with `MemoryError`."""
WORDS = 4


def outcome(target: Target, case: Any) -> str:
    """How a case fails, in a few words that do not name its content; empty where it does not."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(target, case, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        ended = os.WTERMSIG(status)
        return "does not end" if ended == signal.SIGALRM else f"the process died with signal {ended}"
    return said


def _child(target: Target, case: Any, writing: int) -> None:
    """Try the case, write what it fails with, and end the process."""
    try:
        limit_memory()
        signal.alarm(TRY_S)
        target.check(case)
        said = ""
    except Wrong as wrong:
        said = " ".join(["wrong:", *wrong.sentence.split()[:WORDS]])
    except BaseException as error:  # noqa: BLE001 — whatever it is, it is the answer
        said = type(error).__name__
    os.write(writing, said.encode("utf-8", "replace"))
    os._exit(0)


def limit_memory() -> None:
    """A case that takes the machine's memory is a failing case, not the end of the run."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


def shrink(case: Any, fails: Callable[[Any], bool], *, time_s: float) -> Any:
    """The smallest case found in about `time_s` for which `fails` still holds."""
    until = time.monotonic() + time_s
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(case):
            if time.monotonic() > until:
                return case
            if fails(candidate):
                case, progress = candidate, True
                break
    return case


def _smaller(case: Any) -> Iterator[Any]:
    """Cases like this one with something left out, large parts first."""
    if isinstance(case, list | bytes | str):
        yield from _shorter(case)
    if isinstance(case, list | tuple):
        for index, one in enumerate(case):
            for less in _smaller(one):
                yield type(case)((*case[:index], less, *case[index + 1 :]))
    elif isinstance(case, dict):
        for key in case:
            yield {name: value for name, value in case.items() if name != key}
        for key, one in case.items():
            for less in _smaller(one):
                yield {**case, key: less}


def _shorter(case: Any) -> Iterator[Any]:
    size = len(case)
    while size:
        for at in range(0, len(case), size):
            yield case[:at] + case[at + size :]
        size //= 2
