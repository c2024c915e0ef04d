"""An object that is being written: nobody sees it before it is closed, and then whole.

What is small is put at once. Of a large one parts are uploaded while others are still being encoded, in the
client's own threads; `close` puts them together. What is not closed is never there; its parts, where the
process died, are for `unfinished`.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable

import obstore
from obstore.exceptions import BaseError

from table.store.objects.bucket import MARK, Bucket, new_mark
from table.store.objects.errors import Act, RequestAnswer
from table.store.objects.requests import Request
from table.store.port import Data, OutcomeUnknown
from table.store.process import stay_here

PARTS_MAX = 10_000
"""S3's limit of one object."""
GONE_STATUS, GONE_CODE = 404, "InvalidBlockList"
"""So is answered who puts together again what is so already: by S3 and Google, whose upload is gone, and by
Azure, whose blocks are."""


class ObjectSink:
    """See `table.store.port.Sink`. Not for several threads.

    `forget`: called with the key where parts may be left behind, to abort their upload. `before`: called
    before it is put together.
    """

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        *,
        part_bytes: int,
        parts_at_once: int,
        forget: Callable[[str], None],
        before: Callable[[], None] | None = None,
    ) -> None:
        stay_here()
        self._bucket = bucket
        self._key = key
        self._part_bytes = part_bytes
        self._mark = new_mark()
        self._size_bytes = 0
        self._forget = forget
        self._before = before
        self._closed = False
        self._writer = obstore.open_writer(
            bucket.client,
            key,
            attributes={MARK: self._mark},
            buffer_size=part_bytes,
            max_concurrency=parts_at_once,
        )

    @property
    def closed(self) -> bool:
        return self._closed

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def write(self, data: Data) -> int:
        if self._closed:
            raise ValueError("write to a closed file")
        # The client keeps what it is given until it is uploaded; only bytes cannot change until then.
        part = data if isinstance(data, bytes) else bytes(data)
        if not part:
            return 0
        if self._size_bytes + len(part) > self._part_bytes * PARTS_MAX:
            self.discard()
            raise OSError(errno.EFBIG, f"more than {PARTS_MAX} parts", self._bucket.place(self._key))
        try:
            self._writer.write(part)
        except (BaseError, OSError) as error:
            told = self._bucket.told(error, Act.PUT, self._key)
            self.discard()
            raise told from None
        self._size_bytes += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size_bytes

    def flush(self) -> None:
        """Parts go as they are full."""

    def close(self) -> None:
        if self._closed:
            return
        if self._before is not None:
            self._before()
        self._closed = True
        self._count()
        try:
            self._writer.close()
        except (BaseError, OSError) as error:
            self._look(error)

    def _look(self, error: BaseException) -> None:
        """The answer may have been lost, and the object be there all the same."""
        told = self._bucket.told(error, Act.PUT, self._key)
        answer = RequestAnswer.of(error)
        if not answer.is_final or answer.status == GONE_STATUS or answer.code == GONE_CODE:
            try:
                found = self._bucket.head(self._key)
            except OSError:
                raise OutcomeUnknown(
                    errno.ETIMEDOUT,
                    f"whether the object was put is not known: {told.strerror}",
                    self._bucket.place(self._key),
                ) from None
            if found is not None and found.mark == self._mark:
                return
        self._abort()
        raise told from None

    def discard(self) -> None:
        """Nothing of it is there then, nor later."""
        if self._closed:
            return
        self._closed = True
        if self._size_bytes >= self._part_bytes:
            self._bucket.requests.add(Request.ABORT)
        try:
            self._writer.__exit__(KeyboardInterrupt, None, None)  # obstore's way to say: abort
        except (BaseError, OSError):
            self._abort()

    def _abort(self) -> None:
        if self._size_bytes >= self._part_bytes:
            with contextlib.suppress(OSError):  # what cannot be aborted is swept later
                self._forget(self._key)

    def _count(self) -> None:
        requests = self._bucket.requests
        if self._size_bytes < self._part_bytes:
            requests.add(Request.PUT)
            return
        requests.add(Request.UPLOAD)
        requests.add(Request.PART, -(-self._size_bytes // self._part_bytes))
        requests.add(Request.COMPLETE)
