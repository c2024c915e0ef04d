"""End of a Python process with its exit code, whatever its threads still ask native clients.

When Python before 3.14 finalizes, it ends each thread that returns from a native call, by `pthread_exit`
(CPython's issue 87135). That unwinds the frames of the client. Clients in Rust abort the process then:
hdfs-native and hudi, built with PyO3 before 0.29, always, pydantic and pyarrow where they call Python.
So no process of this project finalizes: it joins its threads, runs its exit handlers, flushes, and leaves by
`os._exit`, as a child process of `multiprocessing` does. Spark's Python workers leave by `os._exit`, too.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

END_MAX_S = 10.0
"""Bound for threads that are no daemons and for exit handlers, in seconds. A thread inside a native call may
otherwise hold the process for as long as its server hangs."""
INTERRUPTED = 130
FLUSH_FAILED = 120
"""Python's own code where stdout does not take what is buffered."""


def run_process(main: Callable[[], object]) -> NoReturn:
    """Run `main`, and end the process with the code that `sys.exit(main())` would give it."""
    try:
        code = _code_of(main())
    except SystemExit as error:
        code = _code_of(error.code)
    except BaseException as error:  # noqa: BLE001 - as Python itself: it shows the error and ends
        sys.excepthook(type(error), error, error.__traceback__)
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    end_process(code)


def end_process(code: int) -> NoReturn:
    """End this process with `code`, within `END_MAX_S`. Only from the main thread."""
    bound = threading.Timer(END_MAX_S, os._exit, [code])
    bound.daemon = True
    bound.start()
    try:
        _join_threads()
        atexit._run_exitfuncs()
    except BaseException as error:  # noqa: BLE001 - a second Ctrl-C, a broken handler: the code stays
        sys.excepthook(type(error), error, error.__traceback__)
    os._exit(code if _flushed() else FLUSH_FAILED)


def _code_of(returned: object) -> int:
    """Return the code of what `sys.exit` takes: a number, None for 0, else a text for stderr."""
    if returned is None:
        return 0
    if isinstance(returned, int):
        return returned & 0xFF
    sys.stderr.write(f"{returned}\n")
    return 1


def _join_threads() -> None:
    """Wait for the threads that are no daemons, by Python's own way, which ends those of pools first."""
    threading._shutdown()  # type: ignore[attr-defined]


def _flushed() -> bool:
    """Flush the standard streams. Return whether stdout has taken all."""
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        _say(f"stdout: {error.strerror}: part of the output is lost. Write it elsewhere.\n")
        return False
    return _say("")


def _say(text: str) -> bool:
    """Write to stderr and flush it, where it is open."""
    try:
        if sys.stderr is not None and not sys.stderr.closed:
            sys.stderr.write(text)
            sys.stderr.flush()
    except OSError:
        return False
    return True
