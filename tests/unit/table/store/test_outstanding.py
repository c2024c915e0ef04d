"""A script that uses a store may end at any time: none of its calls returns while Python finalizes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from table.store.hdfs import calls
from table.store.hdfs.calls import Calls
from table.store.hdfs.settings import HdfsSettings
from table.store.outstanding import OutstandingCalls

ROOT = Path(__file__).resolve().parents[4]
BOUND_S = 60.0
SHORT_S = 0.01
RETURNS_S = 0.1

SCRIPT = """
import atexit, socket, sys, time
from table.store.hdfs.calls import Calls
from table.store.hdfs.settings import HdfsSettings
from table.store.port import OutcomeUnknown

class Late:
    '''Deleted by Python as it finalizes, when threads that want its lock are ended.'''
    def __init__(self, *how):
        self.how = how
    def __del__(self):
        told, sleep = self.how
        told.recv(1)  # the call has its answer
        sleep(0.2)

told = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sys.late = Late(told, time.sleep)
calls = Calls("hdfs://127.0.0.1:" + sys.argv[2], HdfsSettings(patience_s=0.2))
try:
    calls.ask("a", lambda: calls.client().rename("/a", "/b", False))
except OutcomeUnknown:
    atexit.register(told.sendall, b"x")  # the server lets the call return, soon
    sys.exit(7)
"""


def test_a_script_keeps_its_exit_code_though_a_call_that_it_gave_up_returns_as_it_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as tells, socket.create_server(("127.0.0.1", 0)) as asked:
        ports = (str(one.getsockname()[1]) for one in (tells, asked))
        command = [sys.executable, "-c", SCRIPT, *ports]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as script:
            for one in (tells, asked):
                one.settimeout(BOUND_S)
            teller, _ = tells.accept()
            caller, _ = asked.accept()
            with teller:
                with caller:
                    teller.recv(1)
                    time.sleep(RETURNS_S)  # as a slow server
                teller.sendall(b"d")
                assert script.stderr is not None
                said = script.stderr.read()
                assert script.wait(BOUND_S) == 7, said


def test_what_is_outstanding_is_waited_for_no_longer_than_its_bound() -> None:
    outstanding = OutstandingCalls()
    assert outstanding.begin()
    assert not outstanding.close(SHORT_S)
    ending = threading.Timer(SHORT_S, outstanding.end)
    ending.start()
    assert outstanding.close(BOUND_S)
    ending.join(BOUND_S)


def test_a_process_that_ends_asks_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    outstanding = OutstandingCalls()
    monkeypatch.setattr(calls, "OUTSTANDING", outstanding)
    assert outstanding.close(SHORT_S)
    with pytest.raises(OSError, match="this process ends"):
        Calls("hdfs://127.0.0.1:1", HdfsSettings()).ask("a", lambda: pytest.fail("it was asked"))
