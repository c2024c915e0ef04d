"""The table service as workers see it. Every call has a deadline and answers; nothing is retried here.

What a broken or late call came to: `UNKNOWN` for Begin, Commit and Abort, which may have had an effect,
`UNAVAILABLE` for the others, which may be asked again as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from control_topic.codec import offsets_to_proto, ranges_to_proto, write_status_to_proto
from control_topic.errors import Malformed
from control_topic.messages import Offsets, Range, WriteStatus
from table.service import codec
from table.service.calls import (
    Answer,
    Directive,
    Fault,
    Order,
    Ordered,
    Result,
    Unreached,
    WorkerReport,
)
from table.service.channel import CHANNEL_OPTIONS, TOKEN_KEY
from table.stubs import table_pb2 as pb
from table.stubs import table_pb2_grpc as pb_grpc

CLIENT_OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.enable_http_proxy", 0),  # the driver is inside the cluster, whatever the environment says
    ("grpc.max_reconnect_backoff_ms", 2_000),
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds per call. Recovery may roll back several instants; a table's first commit is a slow one."""

    survey_s: float = 30.0
    register_s: float = 30.0
    recover_s: float = 300.0
    begin_s: float = 60.0
    commit_s: float = 120.0
    find_s: float = 60.0
    abort_s: float = 120.0
    offsets_s: float = 5.0
    report_s: float = 5.0
    status_s: float = 5.0
    control_s: float = 5.0


class TableClient:
    """A connection to one driver. Thread-safe. Must be made after a fork, not before."""

    def __init__(self, address: str, token: str, *, deadlines: Deadlines | None = None) -> None:
        self._address = address
        self._metadata = ((TOKEN_KEY, token),)
        self._deadlines = deadlines or Deadlines()
        self._channel = grpc.insecure_channel(address, options=CLIENT_OPTIONS)
        self._stub = pb_grpc.TableServiceStub(self._channel)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Give the connection up; calls under way end as broken."""
        self._channel.close()

    # --- for the coordinator --------------------------------------------------------------------

    def survey(self) -> Answer:
        """The highest epoch known, in `Answer.epoch`."""
        reply = self._call(
            self._stub.Survey, pb.SurveyRequest(), codec.survey_from_proto, self._deadlines.survey_s
        )
        return reply if isinstance(reply, Answer) else _lost(Result.UNAVAILABLE, reply)

    def register(self, epoch: int, incarnation: str) -> Answer:
        """Take an epoch. Asked again with the same incarnation, it answers the same."""
        request = pb.RegisterRequest(epoch=epoch, incarnation=incarnation)
        return self._read(self._stub.Register, request, self._deadlines.register_s)

    def recover(self, epoch: int) -> Answer:
        """Roll back what is open; the offsets to go on from, and every source partition."""
        return self._read(self._stub.Recover, pb.RecoverRequest(epoch=epoch), self._deadlines.recover_s)

    def begin(self, epoch: int, transaction: str) -> Answer:
        """Open an instant."""
        request = pb.BeginRequest(epoch=epoch, transaction=transaction)
        return self._write(self._stub.Begin, request, self._deadlines.begin_s)

    def commit(
        self, epoch: int, transaction: str, instant: str, expected: Offsets, statuses: Sequence[WriteStatus]
    ) -> Answer:
        """Complete the instant. `expected`: the whole map of committed offsets as START gave it."""
        request = pb.CommitRequest(
            epoch=epoch,
            transaction=transaction,
            instant=instant,
            expected=offsets_to_proto(expected),
            statuses=[write_status_to_proto(status) for status in statuses],
        )
        return self._write(self._stub.Commit, request, self._deadlines.commit_s)

    def find(self, transaction: str, ranges: Sequence[Range]) -> Answer:
        """Whether a transaction is on the timeline with these ranges: COMMITTED, ABSENT, REFUSED, …"""
        request = pb.FindRequest(transaction=transaction, ranges=ranges_to_proto(ranges))
        return self._read(self._stub.Find, request, self._deadlines.find_s)

    def abort(self, epoch: int, transaction: str, instant: str, reason: str, fault: Fault) -> Answer:
        """Roll the transaction back; COMMITTED where it proves to be complete."""
        request = pb.AbortRequest(
            epoch=epoch,
            transaction=transaction,
            instant=instant,
            reason=codec.sentence(reason),
            fault=codec.fault_to_proto(fault),
        )
        return self._write(self._stub.Abort, request, self._deadlines.abort_s)

    # --- for every worker, and for people -------------------------------------------------------

    def offsets(self) -> Answer:
        """The table's committed offsets as the driver last saw them."""
        return self._read(self._stub.Offsets, pb.OffsetsRequest(), self._deadlines.offsets_s)

    def report(self, report: WorkerReport) -> Directive | Unreached:
        """Say how this worker stands and hear what to do."""
        request, timeout_s = codec.report_to_proto(report), self._deadlines.report_s
        return self._call(self._stub.Report, request, codec.directive_from_proto, timeout_s)

    def status(self) -> dict[str, Any] | Unreached:
        """How the run stands, as `table.service.progress.Progress.to_json` spells it."""
        return self._call(self._stub.Status, pb.StatusRequest(), _status, self._deadlines.status_s)

    def control(self, order: Order) -> Ordered | Unreached:
        """Give the run an order. Unreached: it may have been taken."""
        request = codec.order_to_proto(order)
        return self._call(self._stub.Control, request, codec.ordered_from_proto, self._deadlines.control_s)

    # --- how a call ends ------------------------------------------------------------------------

    def _read(self, method: Callable[..., pb.Reply], request: object, timeout_s: float) -> Answer:
        reply = self._call(method, request, codec.answer_from_proto, timeout_s)
        return reply if isinstance(reply, Answer) else _lost(Result.UNAVAILABLE, reply)

    def _write(self, method: Callable[..., pb.Reply], request: object, timeout_s: float) -> Answer:
        reply = self._call(method, request, codec.answer_from_proto, timeout_s)
        return reply if isinstance(reply, Answer) else _lost(Result.UNKNOWN, reply)

    def _call(
        self, method: Callable[..., Any], request: object, read: Callable[[Any], T], timeout_s: float
    ) -> T | Unreached:
        try:
            return read(method(request, timeout=timeout_s, metadata=self._metadata))
        except grpc.RpcError as error:
            return Unreached(reason=f"the driver at {self._address}: {_why(error)}")
        except (Malformed, UnicodeDecodeError, json.JSONDecodeError) as error:
            return Unreached(reason=f"the driver at {self._address} gave an unreadable answer: {error}")
        except ValueError as error:
            if "closed channel" not in str(error).lower():
                raise
            return Unreached(reason=f"the connection to the driver at {self._address} is closed")


def _lost(result: Result, unreached: Unreached) -> Answer:
    return Answer(result=result, reason=unreached.reason)


def _why(error: grpc.RpcError) -> str:
    if not isinstance(error, grpc.Call):
        return repr(error)
    details = (error.details() or "").strip()
    return (
        f"{error.code().name.lower().replace('_', ' ')}, {details}" if details else error.code().name.lower()
    )


def _status(reply: pb.StatusReply) -> dict[str, Any]:
    document = json.loads(reply.json)
    if not isinstance(document, dict):
        raise Malformed("the status is not a JSON object")
    return document
