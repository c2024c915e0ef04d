"""How a file of HDFS is closed within milliseconds.

A name node takes a file for closed when its data nodes have told it of the last block, which they do some
milliseconds after they have told the client. hdfs-native asks at once, and half the time too early; then it
waits for half a second, and cannot be told to wait for less. So its call is given up, and made again: each
call asks when it begins.

The first one has told the name node how long the block is; the others say nothing of it any more. Where it
was given up before that, none of them closes the file. One that is still at hand is written anew then. Of a
larger one the lease is recovered, as that of a writer who died is: data nodes say how long the block is,
which they have on their disks. That takes seconds: so before such a call is given up the name node must have
answered another, and who has met it all the same lets the client take its time for a while.

A lease is recovered by a path, where another's file may be by then. The name node knows each file by a number
as well, which the writer says when it closes it: a file that was taken away is never closed, nor made again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from hdfs_native import FileStatus, WriteOptions

from table.store.hdfs.loop import GivenUp, within

AGAIN_FIRST_S, AGAIN_SUM_S = 0.05, 1.0
"""When the name node is asked again, and how long in all, each time after twice as long. The second question
of the client's own would come after half a second."""
SYNCS = 5.0
"""The first call has as long at least as that many times what a sync took: it asks data nodes as well."""
RECOVERY_PAUSE_S, RECOVERIES_MAX = 0.5, 20
NOT_OPEN = "LeaseExpiredException"
"""What the name node says of a file that is closed, or is another's to close. One that is not there any more
it does not find.
"""


class Writer(Protocol):
    """The client's own, and not the file that Python makes of it: that one closes itself when nobody holds it
    any more, which asks the name node, without patience, in whatever thread collects garbage.
    """

    async def write(self, buf: bytes, /) -> int: ...

    async def hsync(self) -> None: ...

    async def close(self) -> None: ...


class Client(Protocol):
    """The client's own, too. Its threads end with it, whatever they are doing for a writer; and whoever
    waits for them then has Python's lock, which they may need.
    """

    async def create(self, path: str, write_options: WriteOptions, /) -> Writer: ...

    async def recover_lease(self, path: str, /) -> bool: ...

    async def get_file_info(self, path: str, /) -> FileStatus: ...


async def sync_and_close(
    writer: Writer, *, hasty: bool, after: Callable[[], Awaitable[object]] | None = None
) -> bool:
    """Of a file with something in it, all of which is on disks then. Whether it is closed.

    `hasty`: the name node is asked again sooner than the client does it; it is closed else. `after`: see
    `table.store.hdfs.loop.within`. Ends where whoever waits for it gives it up. Raises what the client does.
    """
    began_s = time.monotonic()
    await writer.hsync()
    if not hasty:
        await writer.close()
        return True
    again_s = max(AGAIN_FIRST_S, SYNCS * (time.monotonic() - began_s))
    return await _asked(writer, again_s, after) or await _asked_again(writer, again_s)


async def recover(writer: Writer, client: Client, full: str, size_bytes: int) -> bool:
    """What was not closed by that is, and whole, when this returns: whether it was closed before.

    `full`: its whole path. Raises what the client does, and `ConnectionError` where it is not.
    """
    was_closed = await _recovered(writer, client, full)
    found = await client.get_file_info(full)
    try:
        await writer.close()  # is it this one?
    except RuntimeError as error:
        if NOT_OPEN not in str(error):
            raise
    if found.length != size_bytes:
        raise ConnectionError(f"{size_bytes} bytes were synced, and {found.length} are left of them")
    return was_closed


async def _asked(
    writer: Writer, bound_s: float, after: Callable[[], Awaitable[object]] | None = None
) -> bool:
    """Whether it is closed. Where not, it may be so all the same."""
    try:
        await within(bound_s, writer.close, after=after)
    except GivenUp:
        return False
    return True


async def _asked_again(writer: Writer, again_s: float) -> bool:
    """As above. An error may be about a file that is closed, of which the answer came too late. Raises
    `FileNotFoundError` where it was taken away.
    """
    ends_s = time.monotonic() + AGAIN_SUM_S
    try:
        while time.monotonic() < ends_s:
            if await _asked(writer, again_s := 2 * again_s):
                return True
    except FileNotFoundError:
        raise
    except Exception:  # noqa: BLE001 — whoever goes on meets it again
        return False
    return False


async def _recovered(writer: Writer, client: Client, full: str) -> bool:
    """Whether it was closed already, and only the answer came too late."""
    refused: Exception | None = None
    for number in range(RECOVERIES_MAX):
        try:
            if await client.recover_lease(full):
                return number == 0
        except OSError:
            raise
        except RuntimeError as error:  # a name node's, whose data nodes have not told it of the block yet
            refused = error
        if await _asked_again(writer, RECOVERY_PAUSE_S):
            return False
        await asyncio.sleep(RECOVERY_PAUSE_S)
    raise ConnectionError("its data nodes do not tell the name node of its last block") from refused
