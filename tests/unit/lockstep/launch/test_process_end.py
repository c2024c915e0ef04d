"""A process ends with its exit code, though native clients are still being asked."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
BOUND_S = 60.0

FINALIZED = """
import os, sys, threading, time
from functools import partial
from lockstep.launch import process_end

class Late:
    '''Deleted by Python as it finalizes, when threads that want its lock are ended.'''
    def __init__(self, end):
        self.end = end
    def __del__(self):
        self.end()
"""

ASKS = f"""{FINALIZED}
import socket
from hdfs_native import Client

def finalize():
    told.sendall(b"x")  # the server lets the call return now
    time.sleep(60)

told = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sys.late = Late(finalize)
client = Client("hdfs://127.0.0.1:" + sys.argv[2], {{"dfs.client.failover.max.attempts": "0"}})
threading.Thread(target=client.rename, args=("/a", "/b", False), daemon=True).start()
assert told.recv(1) == b"a"  # the call has reached the server

def fails():
    raise ValueError("its own")

process_end.run_process({{"return": lambda: 7, "exit": lambda: sys.exit(7), "raise": fails}}[sys.argv[3]])
"""
"""A daemon thread is in a call of a client in Rust that returns while Python finalizes, if it does."""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, stdout and stderr."""
    with process:
        try:
            out, err = process.communicate(timeout=BOUND_S)
        finally:
            process.kill()
    return process.returncode, out, err


@contextmanager
def silent_server() -> Iterator[tuple[str, str]]:
    """Ports to tell it by and to ask it at. It says who has asked, and hangs up on him once it is told to."""
    with socket.create_server(("127.0.0.1", 0)) as tells, socket.create_server(("127.0.0.1", 0)) as asked:

        def serve() -> None:
            teller, _ = tells.accept()
            caller, _ = asked.accept()
            with teller, caller:
                assert caller.recv(4) == b"hrpc"
                teller.sendall(b"a")
                teller.recv(1)

        serving = threading.Thread(target=serve)
        serving.start()
        yield str(tells.getsockname()[1]), str(asked.getsockname()[1])
        serving.join(BOUND_S)


def test_a_process_keeps_its_exit_code_though_a_native_call_is_outstanding_as_it_ends() -> None:
    """Python would end the thread of the call as it returns, and the client abort the process by that."""
    with silent_server() as one, silent_server() as two, silent_server() as three:
        ways = dict(zip(("return", "exit", "raise"), (one, two, three), strict=True))
        processes = {way: python(ASKS, *ports, way) for way, ports in ways.items()}
        said = {way: ended(process) for way, process in processes.items()}
    assert {way: code for way, (code, _, _) in said.items()} == {"return": 7, "exit": 7, "raise": 1}, said
    assert "ValueError: its own" in said["raise"][2]


def test_a_process_ends_though_a_thread_that_is_no_daemon_does_not() -> None:
    code = f"""{FINALIZED}
process_end.END_MAX_S = 0.1
threading.Thread(target=threading.Event().wait).start()
process_end.run_process(lambda: 5)
"""
    assert ended(python(code))[0] == 5


def test_threads_exit_handlers_and_output_are_waited_for() -> None:
    code = f"""{FINALIZED}
import atexit, logging
from concurrent.futures import ThreadPoolExecutor

def work():
    time.sleep(0.05)
    print("worked")

atexit.register(print, "handled", end="")
ThreadPoolExecutor(1).submit(work)
process_end.run_process(lambda: None)
"""
    assert ended(python(code)) == (0, "worked\nhandled", "")


@pytest.mark.parametrize(
    ("returned", "code", "said"), [("None", 0, ""), ("3", 3, ""), ("-1", 255, ""), ("'why'", 1, "why\n")]
)
def test_an_exit_code_is_what_python_would_make_of_it(returned: str, code: int, said: str) -> None:
    source = f"{FINALIZED}\nprocess_end.run_process(lambda: sys.exit({returned}))"
    assert ended(python(source)) == (code, "", said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_process_whose_output_is_lost_does_not_end_well() -> None:
    code = f"""{FINALIZED}
sys.stdout = open("/dev/full", "w")
print("lost")
process_end.run_process(lambda: 0)
"""
    status, _, said = ended(python(code))
    assert status == 120 and "No space left on device" in said


def finalizes(entry: str) -> bool:
    """Whether Python finalizes at the end of an entry point that shows its help."""
    code = f"{FINALIZED}\nsys.late = Late(partial(os.write, 1, b'finalized'))\n{entry}\n"
    status, out, said = ended(python(code, "--help"))
    assert status == 0 and "Usage:" in out, said
    return "finalized" in out


def test_no_command_lets_python_finalize() -> None:
    assert not finalizes("from lockstep.cli import main; main()")


def test_no_job_lets_python_finalize() -> None:
    assert not finalizes("import runpy; runpy.run_path('lockstep/entry/job.py', run_name='__main__')")
