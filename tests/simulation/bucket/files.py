"""What Hudi's client asks of the store: each try a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from table.errors import Unavailable
from tests.simulation.bucket.server import Act, Request, Thing, Unanswered
from tests.simulation.bucket.tape import Steps, tries

if TYPE_CHECKING:
    from tests.simulation.bucket.world import World


class Files:
    """Of one driver, in its process, by its machine's clock. `tenure`: its hold of the table lock."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.name = "last" if number == len(world.shape.machines) - 1 else f"d{number + 1}"
        self.machine = world.shape.machines[number]
        self.skew_ms = world.shape.skews_ms[number]
        self.process: Any = None
        self.patient = world.shape.patient or self.name == "last"
        self.tenure = ""

    def clock_ms(self) -> int:
        return self.world.now_ms + self.skew_ms

    def note(self, text: str) -> None:
        self.world.note(self.name, text)

    def ask(self, request: Request) -> Steps[Any]:
        for left in range(tries(self.patient), 0, -1):
            try:
                return (yield request)
            except Unanswered:
                if left == 1:
                    raise

    def put(self, path: str, data: bytes) -> Steps[None]:
        yield from self.ask(Request(Act.PUT, path, data, tenure=self.tenure))

    def make(self, path: str, data: bytes) -> Steps[None]:
        """hadoop-aws's `create(path, overwrite = false)`: a look, and a put without a condition."""
        if (yield from self.ask(Request(Act.LOOK, path))) is not None:
            raise Unavailable(f"{path} is there already")
        yield from self.put(path, data)

    def delete(self, path: str) -> Steps[None]:
        yield from self.ask(Request(Act.DELETE, path))

    def read(self, path: str) -> Steps[bytes]:
        found: Thing = yield from self.ask(Request(Act.READ, path))
        return found.data
