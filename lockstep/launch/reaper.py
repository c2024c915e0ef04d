"""Runs a command that must not outlive the process that asked for it. A script of its own.

Usage: reaper.py PARENT_PID COMMAND... Writes the command's process id as a line on stdout, and ends with
the command's own status. Where the parent is gone, the command is killed; where this process is killed,
Linux kills the command (PR_SET_PDEATHSIG). The signal follows the *thread* that forked, so it is set from
here, where only the main thread forks, and not in a driver with threads that come and go.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

PARENT_POLL_S = 0.25
PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    parent, command = int(arguments[0]), arguments[1:]
    if os.getppid() != parent:
        return 1
    on_linux = sys.platform == "linux"
    libc = ctypes.CDLL(None) if on_linux else None

    def die_with_reaper() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=die_with_reaper)
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.close()
    ended = threading.Event()

    def await_child() -> None:
        child.wait()
        ended.set()

    threading.Thread(target=await_child, daemon=True).start()
    while not ended.wait(PARENT_POLL_S):
        if os.getppid() != parent:
            child.kill()
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
