"""A conditional put whose answer may be lost: the object that is there then says whose it is.

The store keeps the condition; who asks does not always hear of it. A put that landed and whose answer did not
come is answered "no" when it is asked for again, by the client itself or by us: its own object is in the way.
So whatever is heard but a plain yes, the mark of what is there decides.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from obstore.exceptions import BaseError

from table.store.objects.bucket import Bucket, Head, Version, new_mark
from table.store.objects.errors import Act, RequestAnswer
from table.store.port import Data, OutcomeUnknown

PAUSE_S = 0.2
PAUSE_MAX_S = 5.0


def put_if(
    bucket: Bucket,
    key: str,
    data: Data,
    condition: Version | None,
    *,
    patience_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Whether it was this call that put it. `condition`: as `Bucket.put_if` has it.

    Raises `OSError` where the store refuses, `OutcomeUnknown` where it does not say within `patience_s`,
    about: then this call's put may have landed, and one that is still on its way may land later.
    """
    mark, until_s, pause_s = new_mark(), time.monotonic() + patience_s, PAUSE_S
    while True:
        why = "the store said that another is at it"
        try:
            if bucket.put_if(key, data, mark, condition):
                return True
        except (BaseError, OSError) as error:
            refused = bucket.told(error, Act.PUT, key)
            if RequestAnswer.of(error).is_final:
                raise refused from None
            why = str(refused.strerror)
        try:
            found = bucket.head(key)
        except OSError as error:
            why = str(error.strerror)
            if isinstance(error, PermissionError):  # which no patience helps against
                until_s = 0.0
        else:
            if _decided(found, mark, condition):
                return found is not None and found.mark == mark
        if time.monotonic() >= until_s:
            told = f"whether it was put is not known: {why}"
            raise OutcomeUnknown(errno.ETIMEDOUT, told, bucket.place(key))
        sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_MAX_S)


def _decided(found: Head | None, mark: str, condition: Version | None) -> bool:
    """Whether what is there says how this call's put went. Else it is asked for again."""
    if condition is None:
        return found is not None
    return found is None or found.mark == mark or found.condition != condition
