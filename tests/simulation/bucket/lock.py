"""The table lock, as Hudi's StorageBasedLockProvider takes it through our S3StorageLockClient.java.

Names and order follow the Java: what is read after a put that was not answered with a plain yes, when a lock
counts as nobody's, what is waited for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from table.errors import Unavailable
from tests.simulation.bucket.server import ABSENT, Act, Request, Thing, Unanswered
from tests.simulation.bucket.tape import Sleep, Steps

if TYPE_CHECKING:
    from tests.simulation.bucket.driver import Driver

FILE = ".hoodie/.locks/table_lock.json"
LEASE_MS = 60_000
RENEWED_EVERY_MS = 5_000
ASKED_EVERY_MS = 1_000
SETTLED_MS = 3_000
WAITED_MAX_MS = 400_000
TRIES_MAX = 3


class Held(NamedTuple):
    """The object, as it was read or written."""

    owner: str
    process: str
    until_ms: int
    expired: bool
    tag: str


class Lost(Unavailable):
    """The lock is another's: Hudi interrupts the thread that held it."""


class Lock:
    """One driver's. `held`: the object as this driver has written it last; None: it does not hold it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.held: Held | None = None
        self.tenure = ""
        self._tenures = 0
        self.taken = False

    def acquire(self) -> Steps[None]:
        """Raises `Unavailable` where it cannot be had."""
        driver = self.driver
        self._tenures += 1
        owner = f"{driver.name}#{self._tenures}"
        until_ms = driver.world.now_ms + WAITED_MAX_MS
        while driver.world.now_ms < until_ms:
            known, found = yield from self._read()
            if known and (yield from self.is_free(owner, found)):
                wanted = Held(owner, driver.name, driver.clock_ms() + LEASE_MS, False, "")
                said, held = yield from self._upsert(wanted, found)
                if said == "yes":
                    self.held, self.tenure, self.taken = held, owner, True
                    driver.world.start(f"{owner}+", self._renew(owner), parent=driver.process)
                    driver.world.note(driver.name, "holds the table lock")
                    return
            yield Sleep(ASKED_EVERY_MS)
        raise Unavailable("the table lock cannot be had")

    def release(self) -> Steps[bool]:
        """Whether it is given back. Where not, nobody renews it, and this process may take it again."""
        held, self.held, self.tenure = self.held, None, ""
        if held is None:
            return False
        said, _ = yield from self._upsert(held._replace(expired=True), held)
        return said == "yes"

    def is_free(self, owner: str, found: Held | None) -> Steps[bool]:
        """`readCurrentLockFile`, and whether it is expired by this machine's clock."""
        if found is None or found.expired or found.until_ms < self.driver.clock_ms():
            return True
        if found.process == self.driver.name:
            return True  # it has let go of it, or tries again
        if self.driver.proves_dead(found.process):
            yield from self.settle()
            return True
        return False

    def settle(self) -> Steps[None]:
        yield Sleep(SETTLED_MS)

    def _renew(self, owner: str) -> Steps[None]:
        while True:
            yield Sleep(RENEWED_EVERY_MS)
            held = self.held
            if held is None or held.owner != owner:
                return
            sent_ms = self.driver.world.now_ms
            said, now = yield from self._upsert(
                held._replace(until_ms=self.driver.clock_ms() + LEASE_MS), held
            )
            if self.held is None or self.held.owner != owner:
                return
            if said == "others":
                self.held = None
                self.driver.lose_lock()
                return
            if said == "yes":
                self.driver.world.renewed(self.driver.process, owner, sent_ms)
            self.held = now or self.held

    def _upsert(self, wanted: Held, before: Held | None) -> Steps[tuple[str, Held | None]]:
        """`tryUpsertLockFile`: `yes`, `others` or `unknown`."""
        tried = 0
        while True:
            tried += 1
            refused = False
            try:
                tag = yield self._put(wanted, before)
                if tag is not None:
                    return "yes", wanted._replace(tag=tag)
                refused = True
            except Unanswered:
                pass
            known, there = yield from self._read()
            if there is not None and there._replace(tag="") == wanted._replace(tag=""):
                return "yes", there
            ours = there is not None and there.owner == wanted.owner
            if known and refused and ours and tried < TRIES_MAX:
                before = there  # an earlier write of this very holder has landed late
                continue
            unchanged = there is None if before is None else there is not None and before.tag == there.tag
            if known and not unchanged and not ours:
                return "others", None
            return "unknown", None

    def _put(self, wanted: Held, before: Held | None) -> Request:
        words = json.dumps(wanted[:4]).encode()
        return Request(Act.PUT, FILE, words, self.condition(before))

    def condition(self, before: Held | None) -> str:
        return ABSENT if before is None else before.tag

    def _read(self) -> Steps[tuple[bool, Held | None]]:
        try:
            found: Any = yield Request(Act.LOOK, FILE)
        except Unanswered:
            return False, None
        if found is None:
            return True, None
        assert isinstance(found, Thing)
        owner, process, until_ms, expired = json.loads(found.data)
        return True, Held(owner, process, until_ms, expired, found.tag)
