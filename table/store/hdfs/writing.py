"""A file of HDFS from its first byte to its end, on data nodes that are there.

A name node goes on naming a data node that has died, for some ten minutes. hdfs-native fails with a file's
first block then, or waits for it for ever, where Hadoop's own client leaves that node out; and it cannot be
told to. So what has not got through is begun again, and the name node chooses anew; then with fewer copies,
which leave the dead one out where there are no more nodes than copies. The missing ones are asked for when
the file is closed, and made within seconds.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hdfs_native import AsyncClient, WriteOptions

from table.store.hdfs.calls import Calls
from table.store.hdfs.closing import Client, Writer, recover, sync_and_close
from table.store.hdfs.loop import again
from table.store.port import OutcomeUnknown

COPIES: tuple[int | None, ...] = (None, None, 2)
"""Of the first attempts; of all others 1, which has no data node wait for another. None: as many as the
cluster's configuration says."""
ATTEMPTS_MAX = 32
"""A file with one copy meets the dead one of three in every third attempt: eight were not enough once in some
hundred files."""
ATTEMPTS_S, ATTEMPTS_LEAST = 60.0, 16
"""After this long, in seconds, and at least that many attempts the next is the last. A data node that stands
still costs seconds where a dead one refuses at once: by the time alone a file gave up after seven attempts,
one of some thousand files that meet one of three nodes."""
PAUSE_FIRST_S, PAUSE_MAX_S = 0.01, 1.0
HANGS_S = 10.0
"""Bound of one attempt to bring what is held to disks, in seconds, but for the last."""
HANGS_LEAN_S, LEAN_STEP = 3.0, 2
"""Bound of the first attempts with few copies, in seconds. It doubles after each `LEAN_STEP` attempts, up to
`HANGS_S`: a file leaves a node that stands still soon, and a slow cluster gets its time."""
PIECE_S = 20.0
"""So long a piece may take of a file that is begun: it is not begun again here, but with its transaction."""

T = TypeVar("T")


class Writing:
    """Over whatever is there at `full`, a whole path. `place`: for people. Methods raise `OSError`.

    It is on disks when it is closed: HDFS's own close leaves data in the memory of its data nodes, a sync
    before it does not. That is of the file's last block; earlier ones are written when they are full.
    """

    def __init__(self, calls: Calls, full: str, place: str) -> None:
        self._calls = calls
        self._full = full
        self._place = place
        self._copies = 0  # to be asked for in the end
        self._begun = False
        self._size_bytes = 0
        self._client: Client
        self._held: AsyncClient  # what the writer needs ends with it
        self._writer = self._made(None)

    def write(self, data: bytes) -> None:
        """Something, of a file to which more may come."""
        if self._begun:
            self._once(lambda: self._write(data, PIECE_S))
        else:
            self._attempted(lambda patience_s, _: self._write(data, patience_s))

    def end(self, data: bytes) -> None:
        """The rest of it, or all, or nothing."""
        if self._begun:
            if data:
                self._once(lambda: self._write(data, PIECE_S))
            self._once(self._close_begun)
        elif data:
            self._attempted(lambda patience_s, hasty: self._whole(data, patience_s, hasty=hasty))
        else:
            self._once(lambda: self._run(self._writer.close))
        if self._copies:
            self._calls.ask(
                self._place, lambda: self._calls.client().set_replication(self._full, self._copies)
            )

    def _attempted(self, act: Callable[[float | None, bool], None]) -> None:
        """What is begun anew where a data node does not do it, or where it was done in haste."""
        last_from_s = time.monotonic() + ATTEMPTS_S
        for number in range(1, ATTEMPTS_MAX + 1):
            last = number == ATTEMPTS_MAX or (number > ATTEMPTS_LEAST and time.monotonic() > last_from_s)
            copies = 1 if number > len(COPIES) or self._calls.lean else COPIES[number - 1]
            if number > 1:
                time.sleep(min(PAUSE_MAX_S, PAUSE_FIRST_S * 2 ** (number - 2)))
            if number > 1 or copies is not None:
                self._writer = self._made_anew(copies)
            try:
                act(None if last else _patience_s(number, copies), number == 1)
            except (ConnectionError, OutcomeUnknown) as error:
                if isinstance(error, OutcomeUnknown) or number >= len(COPIES):
                    self._calls.be_lean()
                if last:
                    raise
            else:
                self._begun = True
                return

    def _whole(self, data: bytes, patience_s: float | None, *, hasty: bool) -> None:
        self._write(data, patience_s)
        writer = self._writer
        if not self._run(lambda: sync_and_close(writer, hasty=hasty), patience_s):
            raise ConnectionError(errno.ETIMEDOUT, "HDFS did not close the file in time", self._place)

    def _close_begun(self) -> None:
        writer, client, full = self._writer, self._client, self._full

        async def closed() -> bool:
            """Whether nothing had to be recovered."""
            hasty = not self._calls.unhurried
            if await sync_and_close(writer, hasty=hasty, after=lambda: client.get_file_info(full)):
                return True
            return await recover(writer, client, full, self._size_bytes)

        if not self._run(closed):
            self._calls.be_unhurried()

    def _once(self, act: Callable[[], None]) -> None:
        """Whom a data node keeps here finds those that are there next time."""
        try:
            act()
        except (ConnectionError, OutcomeUnknown):
            self._calls.be_lean()
            raise

    def _write(self, data: bytes, patience_s: float | None) -> None:
        writer = self._writer
        self._size_bytes += self._run(lambda: writer.write(data), patience_s)

    def _run(self, work: Callable[[], Awaitable[T]], patience_s: float | None = None) -> T:
        return self._calls.run(self._place, work, patience_s=patience_s)

    def _made_anew(self, copies: int | None) -> Writer:
        """Raises `FileNotFoundError` where it was taken away meanwhile: a rollback comes only once."""
        found = self._calls.ask(self._place, lambda: self._calls.client().get_file_info(self._full))
        if copies is not None and not self._copies:
            self._copies = found.replication or 0
        return self._made(copies)

    def _made(self, copies: int | None) -> Writer:
        options = WriteOptions(replication=copies, overwrite=True, create_parent=False)
        self._held = self._calls.writing()
        self._client = client = self._held.inner
        self._size_bytes = 0
        return self._run(lambda: again(lambda: client.create(self._full, options)))


def _patience_s(number: int, copies: int | None) -> float:
    """Return the bound of an attempt that is not the last, in seconds. `number`: from 1."""
    if copies is None:
        return HANGS_S
    return min(HANGS_S, HANGS_LEAN_S * 2.0 ** ((number - 1) // LEAN_STEP))
