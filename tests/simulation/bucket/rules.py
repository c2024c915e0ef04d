"""Which parts a world is made of: production's, the store, and what is modelled; a bug replaces one."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from table.hudi.driver.fence import Fence
from table.hudi.driver.lease import LeaseClock
from table.hudi.upkeep.sweep import Sweeper
from table.store.objects.conditional import put_if
from tests.simulation.bucket.checks import check
from tests.simulation.bucket.driver import Driver
from tests.simulation.bucket.lock import Lock
from tests.simulation.bucket.server import Server


def new_mark() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    fence: type[Fence] = Fence
    clock: type[LeaseClock] = LeaseClock
    sweeper: type[Sweeper] = Sweeper
    put_if: Callable[..., bool] = put_if
    new_mark: Callable[[], str] = new_mark
    lock: type[Lock] = Lock
    driver: type[Driver] = Driver
    server: type[Server] = Server
    check: Callable[[Any], None] = check


RULES = Rules()
