"""Production's own code, which asks a store and waits for the answer, in a world where nobody waits.

What it has been answered so far is on a tape. Where the tape ends, the call is left by `Asked`, the world
performs the request, and the call begins anew, with one answer more. Nothing of that is seen by the code: it
is deterministic but for what it asks, clocks included, and what it remembers is given back to it as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from table.store.objects.bucket import Bucket, Head, Version
from table.store.objects.errors import Act as Doing
from table.store.objects.errors import RequestAnswer
from table.store.port import Capabilities, Stat, Upload
from tests.simulation.bucket.server import ABSENT, Act, Request, Thing, Unanswered, missing

T = TypeVar("T")
FOR_EVER_S = 1e9


@dataclass(frozen=True, slots=True)
class Sleep:
    for_ms: int


Effect = Request | Sleep
Steps = Generator[Effect, Any, T]
"""A process's doing: yields what it asks for, and is sent the answer."""


class Asked(BaseException):
    """Leaves the call; no `except` of production's catches it."""

    def __init__(self, effect: Effect) -> None:
        self.effect = effect


class Tape:
    def __init__(self, answers: list[Any]) -> None:
        self._answers = answers
        self._at = 0

    def ask(self, effect: Effect) -> Any:
        if self._at == len(self._answers):
            raise Asked(effect)
        self._at += 1
        answer = self._answers[self._at - 1]
        if isinstance(answer, OSError):
            raise answer
        return answer

    def once(self, look: Callable[[], T]) -> T:
        """What is looked at is the same when the call begins anew."""
        if self._at == len(self._answers):
            self._answers.append(look())
        self._at += 1
        found: T = self._answers[self._at - 1]
        return found


PutIf = Callable[..., bool]


class TapedStore:
    """What the drivers' rules need of `table.store.port.Store`, on a tape.

    `put_if`: production's put on condition. `patient`: whether what is not answered is asked for again.
    """

    capabilities = Capabilities(dates=True, folders=False, hides=True, remote=True, syncs=False)

    def __init__(self, put_if: PutIf, new_mark: Callable[[], str], *, patient: bool) -> None:
        self.tape = Tape([])
        self.patient = patient
        self._put_if = put_if
        self._new_mark = new_mark

    def call(self, do: Callable[[], T], whose: object) -> Steps[T]:
        """Do what production does, step by step. `whose`: the object that remembers something of it, which
        each time begins with what it knew before."""
        answers: list[Any] = []
        known = _copied(vars(whose))
        while True:
            vars(whose).update(_copied(known))
            self.tape = Tape(answers)
            try:
                return do()
            except Asked as asked:
                effect = asked.effect
            try:
                answers.append((yield effect))
            except OSError as error:
                answers.append(error)

    def place(self, path: str = "") -> str:
        return f"world:/{path}"

    def read(self, path: str, *, bytes_max: int) -> bytes:
        found: Thing = self._asked(Request(Act.READ, path))
        return found.data[:bytes_max]

    def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
        mark = self.tape.once(self._new_mark)
        self._asked(Request(Act.PUT, path, bytes(data), mark=mark))

    def create(self, path: str, data: bytes = b"") -> bool:
        bucket: Any = TapedBucket(self.tape, self.tape.once(self._new_mark))
        patience_s = FOR_EVER_S if self.patient else 0.0
        return self._put_if(bucket, path, data, None, patience_s=patience_s, sleep=self._sleep)

    def stat(self, path: str) -> Stat | None:
        found: Thing | None = self._asked(Request(Act.LOOK, path))
        if found is None:
            return None
        modified_s = found.modified_ms / 1_000
        return Stat(
            size_bytes=len(found.data), modified_s=modified_s, changed_s=modified_s, identity=(found.tag,)
        )

    def names(self, folder: str = "") -> list[str]:
        found: list[str] = self._asked(Request(Act.NAMES, folder))
        if not found:
            raise missing(folder)
        return found

    def walk(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
        found = _by_folder(tuple(self._asked(Request(Act.WALK, folder))))
        return (
            (one, names) for one, names in found if not leaving_out or one.split("/")[0] not in leaving_out
        )

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        for one in self._asked(Request(Act.UPLOADS, folder)):
            begun = datetime.fromtimestamp(one.begun_ms / 1_000, UTC)
            yield Upload(path=one.path, number=one.number, begun=begun)

    def abort(self, upload: Upload) -> None:
        self._asked(Request(Act.ABORT, upload.path, number=upload.number))

    def delete(self, path: str) -> bool:
        return bool(self._asked(Request(Act.DELETE, path)))

    def delete_folder(self, path: str) -> None:
        self._asked(Request(Act.DELETE_BELOW, path))

    def _sleep(self, for_s: float) -> None:
        self.tape.ask(Sleep(round(1_000 * for_s)))

    def _asked(self, request: Request) -> Any:
        """As the client does: what is not answered is asked for again, a few times."""
        for left in range(tries(self.patient), 0, -1):
            try:
                return self.tape.ask(request)
            except Unanswered:
                if left == 1:
                    raise
        raise AssertionError("no try at all")


@lru_cache(maxsize=256)
def _by_folder(paths: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        parent, _, name = path.rpartition("/")
        found.setdefault(parent, []).append(name)
    return [*found.items()]


def _copied(known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: copy(one) if isinstance(one, dict | set) else one for name, one in known.items()}


def tries(patient: bool) -> int:
    return 3 if patient else 1


class TapedBucket(Bucket):
    """As much of production's bucket as a put on condition asks for. `mark`: what this put's object bears."""

    def __init__(self, tape: Tape, mark: str) -> None:
        self._tape = tape
        self._ours = mark
        self._told_as = ""

    def put_if(self, key: str, data: Any, mark: str, condition: Version | None) -> bool:
        self._told_as = mark  # a new one each time that the call begins anew
        wanted = ABSENT if condition is None else condition["e_tag"]
        return self._tape.ask(Request(Act.PUT, key, bytes(data), wanted, self._ours)) is not None

    def head(self, key: str) -> Head | None:
        found: Thing | None = self._tape.ask(Request(Act.LOOK, key))
        if found is None:
            return None
        return Head(
            size_bytes=len(found.data),
            modified=datetime.fromtimestamp(found.modified_ms / 1_000, UTC),
            e_tag=found.tag,
            version="",
            mark=self._told_as if found.mark == self._ours else found.mark,
        )

    def told(self, error: BaseException, act: Doing, key: str) -> OSError:
        assert isinstance(error, OSError) and not RequestAnswer.of(error).is_final
        return error

    def place(self, key: str) -> str:
        return f"world:/{key}"
