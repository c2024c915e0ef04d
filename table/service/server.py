"""The table service on a socket: one token for the run, limits on everything."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc

from table.service.channel import CHANNEL_OPTIONS, KEEPALIVE_MS, TOKEN_KEY
from table.service.running import QUEUE_MAX
from table.service.servicer import TableService
from table.stubs import table_pb2_grpc as pb_grpc

THREADS = QUEUE_MAX + 16
"""At most QUEUE_MAX + 1 of them wait for the table; the others answer reports."""
RPCS_MAX = 512
LOOKAHEAD_BYTES = 256 * 1024
"""Of a message that nobody has asked for yet."""

METADATA_BYTES_MAX = 16 * 1024
"""Of a call's headers: the token is some 60 bytes."""

SERVER_OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.http2.bdp_probe", 0),  # a sender gets no larger window than this before its token is looked at
    ("grpc.http2.lookahead_bytes", LOOKAHEAD_BYTES),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.so_reuseport", 0),  # a port that another driver listens on is an error, not half of its calls
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MS // 2),
)


class TokenCheck(grpc.ServerInterceptor):  # type: ignore[type-arg]  # generic in its stubs only
    """Refuses every call that does not carry the run's token, before it reads any of its message.

    The refusal takes its messages as a stream that nobody reads: a handler of one message is called when the
    whole of it, which may be large, is in memory. HTTP/2's flow control keeps the rest with the sender.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._refusal = grpc.stream_unary_rpc_method_handler(_refuse)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        given = dict(handler_call_details.invocation_metadata or ()).get(TOKEN_KEY, "")
        given_bytes = given.encode() if isinstance(given, str) else given
        if not hmac.compare_digest(given_bytes, self._token):
            return self._refusal
        return continuation(handler_call_details)


def _refuse(_requests: Any, context: grpc.ServicerContext) -> None:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "the call does not carry this run's token")


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that listens. `address` is host:port."""

    address: str
    _server: grpc.Server

    def stop(self, *, grace_s: float = 2.0) -> None:
        """Take no more calls; wait at most `grace_s` for those under way."""
        self._server.stop(grace_s).wait(grace_s + 1.0)


def serve(service: TableService, *, token: str, host: str = "127.0.0.1", port: int = 0) -> RunningServer:
    """Listen on `host`; port 0 takes a free one. Raises `OSError` where it cannot listen.

    The traffic is not encrypted: another `host` than loopback is for a network that is trusted.
    """
    if not token:
        raise ValueError("the table service needs a token")
    server = grpc.server(
        ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="table-rpc"),
        interceptors=[TokenCheck(token)],
        options=SERVER_OPTIONS,
        maximum_concurrent_rpcs=RPCS_MAX,
    )
    pb_grpc.add_TableServiceServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    try:
        bound = server.add_insecure_port(f"{bracketed(host)}:{port}")
    except RuntimeError as error:
        raise OSError(f"the table service cannot listen on {host}:{port}: {error}") from error
    if bound == 0:
        raise OSError(f"the table service cannot listen on {host}:{port}")
    server.start()
    return RunningServer(f"{bracketed(host)}:{bound}", server)


def bracketed(host: str) -> str:
    """As it stands before a port."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
