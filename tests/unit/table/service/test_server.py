"""The table service's socket against strangers: who has no token costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

ROOT = Path(__file__).resolve().parents[4]
CALLS = 30
BODY = bytes(63 * 1024 * 1024)
"""Just below the largest message that the service takes."""

GROWTH_MAX_BYTES = 40 * 1024 * 1024
"""What all the calls may cost together: less than one of their bodies. It was ten times as much and more."""

SERVER = """
import sys
from table.service.server import serve

class Nobody:
    def __getattr__(self, name):
        if name[0].isupper():
            return lambda request, context: sys.exit("a call got through")
        raise AttributeError(name)

server = serve(Nobody(), token="t" * 32)
print(server.address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    """In a process of its own, whose memory is its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.communicate(timeout=30)


def peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def call(address: str, method: str) -> grpc.StatusCode:
    """One call without a token, with a body as large as any."""
    options = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    with grpc.insecure_channel(address, options=options) as channel:
        rpc = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
        with pytest.raises(grpc.RpcError) as refused:
            rpc(BODY, timeout=60)
    code: grpc.StatusCode = refused.value.code()
    return code


def test_a_strangers_large_messages_are_refused_before_they_are_read(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    before_bytes = peak_bytes(server.pid)
    with ThreadPoolExecutor(CALLS) as callers:
        codes = set(
            callers.map(lambda _: call(address, "/lockstep.table.v1.TableService/Commit"), range(CALLS))
        )
    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert peak_bytes(server.pid) - before_bytes < GROWTH_MAX_BYTES


def test_a_method_that_does_not_exist_tells_a_stranger_no_more(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    assert call(address, "/lockstep.table.v1.TableService/Nothing") is grpc.StatusCode.UNAUTHENTICATED
