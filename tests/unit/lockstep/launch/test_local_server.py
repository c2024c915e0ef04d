"""Ports for servers of one's own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lockstep.errors import Failed
from lockstep.launch import local_server

ASKS = """
import sys
from lockstep.errors import Failed
from lockstep.launch import local_server
local_server.PORTS = range(int(sys.argv[1]), int(sys.argv[1]) + 1)
local_server.PORT_ATTEMPTS_MAX = 1
try:
    print(local_server.free_port())
except Failed as error:
    print(error)
"""


def asked_elsewhere(port: int) -> str:
    """What another process is told that can have this port or none."""
    command = [sys.executable, "-c", ASKS, str(port)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_port_is_given_to_one_though_nobody_listens_on_it_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    port = local_server.free_port()
    assert "were all taken" in asked_elsewhere(port)
    monkeypatch.setattr(local_server, "PORTS", range(port, port + 1))
    monkeypatch.setattr(local_server, "PORT_ATTEMPTS_MAX", 1)
    with pytest.raises(Failed, match="were all taken"):
        local_server.free_port()


def test_a_port_is_anybodys_again_when_the_process_that_had_it_has_ended() -> None:
    first = local_server.PORTS[-1]
    assert asked_elsewhere(first) == asked_elsewhere(first) == str(first)
