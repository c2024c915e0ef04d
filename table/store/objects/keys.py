"""The credentials of one client of S3, for weeks: asked for anew where they come from, now and then, and at
once where the store has refused those that were in use.

Botocore renews what says when it ends, a role's. What says nothing, a profile's file, is read again; and
neither hears of keys that were taken back before they ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from table.errors import Refused

GOOD_FOR_S = 600.0
SETTLES_S = 5.0
"""Who is refused within so long of a renewal may have asked before it; and no more often is anew asked."""

log = logging.getLogger("lockstep.store")


class Keys:
    """Safe to use from any thread. `find`: has them found, by files, variables or whoever knows them; raises
    `Refused` or one of botocore's.
    """

    def __init__(
        self, find: Callable[[], Credentials], *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._found = find()
        self._found_s = clock_s()
        self._changed_s = self._asked_s = -SETTLES_S

    def now(self) -> ReadOnlyCredentials:
        """Those to sign with. Raises `Refused` where they have ended and others cannot be had."""
        with self._lock:
            renews_itself = isinstance(self._found, RefreshableCredentials)
            if not renews_itself and self._clock_s() - self._found_s >= GOOD_FOR_S:
                self._renew()
            try:
                return self._found.get_frozen_credentials()
            except (BotoCoreError, ClientError) as error:
                raise Refused(str(error)) from None

    def refused(self) -> bool:
        """The store has refused what was signed with them; whether there are others by now."""
        with self._lock:
            now_s = self._clock_s()
            if now_s - self._changed_s < SETTLES_S:
                return True
            if now_s - self._asked_s < SETTLES_S:
                return False
            self._asked_s = now_s
            if not self._renew():
                return False
            self._changed_s = now_s
            log.info("the store refuses the credentials; others were found where they come from")
            return True

    def _renew(self) -> bool:
        """Whether there are others. Where nobody can say, those that are known stay."""
        self._found_s = self._clock_s()
        try:
            before = self._found.get_frozen_credentials()
        except (BotoCoreError, ClientError, Refused):
            before = None
        try:
            found = self._find()
            frozen = found.get_frozen_credentials()
        except (BotoCoreError, ClientError, Refused) as error:
            log.warning("credentials for S3 could not be asked for anew: %s", error)
            return False
        self._found = found
        return bool(frozen != before)


class Renewed(Credentials):  # type: ignore[misc]  # botocore has no types
    """As botocore's own clients ask for them: each time that they sign."""

    def __init__(self, keys: Keys) -> None:
        super().__init__("", "", method="lockstep")
        self._keys = keys

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return self._keys.now()
