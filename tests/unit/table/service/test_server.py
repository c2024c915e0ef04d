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

ONE_AFTER_THE_OTHER, AT_ONCE = 60, 10
SMALLER = bytes(8 * 1024 * 1024)
WINDOWS_MAX_BYTES = 16 * 1024 * 1024
"""What calls on one connection may cost together: what each may send before its token is looked at is small,
and stays so. It was 30 MB and more."""

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


COMMIT = "/lockstep.table.v1.TableService/Commit"
OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))


def call(address: str, method: str) -> grpc.StatusCode:
    """One call without a token, with a body as large as any, on a connection of its own."""
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        return refusal(channel, method)


def refusal(channel: grpc.Channel, method: str, body: bytes = BODY) -> grpc.StatusCode:
    rpc = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
    with pytest.raises(grpc.RpcError) as refused:
        rpc(body, timeout=60)
    code: grpc.StatusCode = refused.value.code()
    return code


def test_a_strangers_large_messages_are_refused_before_they_are_read(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    before_bytes = peak_bytes(server.pid)
    with ThreadPoolExecutor(CALLS) as callers:
        codes = set(callers.map(lambda _: call(address, COMMIT), range(CALLS)))
    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert peak_bytes(server.pid) - before_bytes < GROWTH_MAX_BYTES


def test_a_strangers_calls_on_one_connection_get_no_larger_windows_by_and_by(
    server: subprocess.Popen[str],
) -> None:
    """As gRPC gives a quick sender, unless it is told otherwise."""
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    before_bytes = peak_bytes(server.pid)
    with grpc.insecure_channel(address, options=OPTIONS) as channel, ThreadPoolExecutor(AT_ONCE) as callers:
        calls = callers.map(lambda _: refusal(channel, COMMIT, SMALLER), range(ONE_AFTER_THE_OTHER))
        assert set(calls) == {grpc.StatusCode.UNAUTHENTICATED}
    assert peak_bytes(server.pid) - before_bytes < WINDOWS_MAX_BYTES


def test_a_method_that_does_not_exist_tells_a_stranger_no_more(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    assert call(address, "/lockstep.table.v1.TableService/Nothing") is grpc.StatusCode.UNAUTHENTICATED
