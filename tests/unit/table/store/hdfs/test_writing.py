"""A file is begun again until it meets data nodes that take it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from table.store.hdfs import writing
from table.store.hdfs.errors import told
from table.store.hdfs.writing import ATTEMPTS_MAX, Writing
from table.store.port import OutcomeUnknown

PATIENCE_S, SOCKET_S = 60.0, 30.0
MANY = 16
THERE = None


class Stands(Exception):
    """The data node that was named stands still: it answers nothing."""


class Cluster:
    """Calls of a cluster whose name node names these data nodes, one for each file that is begun. `Stands`
    waits, by a clock of its own, another error is the client's; after them a node takes what it is given.
    """

    def __init__(self, nodes: Iterable[type[Stands] | Exception | None], *, lean: bool = False) -> None:
        self._nodes = iter(nodes)
        self._node: type[Stands] | Exception | None = THERE
        self.now_s = 0.0
        self.lean = lean
        self.unhurried = False
        self.begun = 0
        self.content = b""
        self.inner = self

    def be_lean(self) -> None:
        self.lean = True

    def writing(self) -> Any:
        return self

    def client(self) -> Any:
        return SimpleNamespace(
            get_file_info=lambda _path: SimpleNamespace(replication=3),
            set_replication=lambda _path, _copies: True,
        )

    def ask(self, _place: str, call: Callable[[], Any]) -> Any:
        return call()

    def run(self, place: str, work: Callable[[], Awaitable[Any]], *, patience_s: float | None = None) -> Any:
        async def all_of_it() -> Any:
            return await work()

        try:
            return asyncio.run(all_of_it())
        except Stands:
            bound_s = PATIENCE_S if patience_s is None else patience_s
            self.now_s += min(bound_s, SOCKET_S)
            if bound_s < SOCKET_S:
                raise OutcomeUnknown(errno.ETIMEDOUT, "HDFS did not answer", place) from None
            raise told(OSError("No data received for 30000ms"), place) from None
        except Exception as error:
            raise told(error, place) from error

    async def create(self, _path: str, _options: Any) -> Cluster:
        self.begun += 1
        self.content = b""
        self._node = next(self._nodes, THERE)
        return self

    async def write(self, data: bytes) -> int:
        if self._node is not THERE:
            raise self._node
        self.content += data
        return len(data)

    async def hsync(self) -> None:
        return None

    async def close(self) -> None:
        return None


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster], Cluster]:
    """Writes a small file."""

    def write(cluster: Cluster) -> Cluster:
        def sleep(pause_s: float) -> None:
            cluster.now_s += pause_s

        clock = SimpleNamespace(monotonic=lambda: cluster.now_s, sleep=sleep)
        monkeypatch.setattr(writing, "time", clock)
        Writing(cluster, "/one", "hdfs://nn/one").end(b"1")  # type: ignore[arg-type]
        assert cluster.content == b"1"
        return cluster

    return write


@pytest.mark.parametrize("lean", [False, True])
def test_a_file_gets_through_though_a_data_node_that_stands_still_is_named_many_times(
    written: Callable[[Cluster], Cluster], lean: bool
) -> None:
    """One of three is, in every third attempt."""
    assert written(Cluster([Stands] * MANY, lean=lean)).begun == MANY + 1


def test_a_file_leaves_a_data_node_that_stands_still_within_seconds(
    written: Callable[[Cluster], Cluster],
) -> None:
    """A worker that writes nothing for a minute is taken for silent."""
    assert written(Cluster([Stands] * 4, lean=True)).now_s < 20
    assert written(Cluster([Stands] * 4)).now_s < 30


def test_a_file_that_no_data_node_answers_for_is_given_up_with_the_reason(
    written: Callable[[Cluster], Cluster],
) -> None:
    cluster = Cluster([Stands] * ATTEMPTS_MAX)
    with pytest.raises(ConnectionError, match="No data received"):
        written(cluster)
    assert cluster.now_s < 240


ERRORS = {
    "all": 'DataTransferError("All nodes failed for write")',
    "closed": 'DataTransferError("Block writer closed prematurely")',
    "late": 'OperationFailed("Failed to complete file in time")',
    "none": 'RPCError("java.io.IOException", "File /one could only be written to 0 of the 1 minReplication '
    'nodes. There are 3 datanode(s) running and 3 node(s) are excluded.\\n\\tat org.apache")',
    "older": 'RPCError("java.io.IOException", "File /one could only be replicated to 0 nodes instead of 1")',
}
"""What hdfs-native and name nodes say."""


@pytest.mark.parametrize("said", ERRORS.values(), ids=ERRORS)
def test_a_file_is_begun_again_whatever_the_client_says_of_data_nodes_that_fail(
    written: Callable[[Cluster], Cluster], said: str
) -> None:
    """A node that dies between the beginning and the sync of a file with one copy, among others."""
    assert written(Cluster([RuntimeError(said)] * 3)).begun > 3


def test_what_the_name_node_refuses_is_not_begun_again(written: Callable[[Cluster], Cluster]) -> None:
    refused = 'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The quota is exceeded")'
    cluster = Cluster([RuntimeError(refused)])
    with pytest.raises(OSError, match="the quota is used up"):
        written(cluster)
    assert cluster.begun == 1
