"""Whatever is done in whatever order, the driver's connector says of the store what is there: random walks on
a real server, each answer compared with that of a reader that keeps nothing.

Others write in the metadata table while the lock is not held here, and not else: that is what the connector
relies on. Requests fail, and answers are lost. In half of the walks somebody else reads in the same JVM.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from table.store.objects.requests import Request
from tests.integration.held import TIMELINE, Held
from tests.s3_proxy import Blow, Lasting

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

STEPS = 120
CHANGES = frozenset({Request.PUT, Request.DELETE, Request.DELETE_MANY})
HISTORY = f"{TIMELINE}/history"
FILES = ".hoodie/metadata/files"
ANYBODYS = ".hoodie/timeline"
INSTANTS = [f"2026010100000{number:04}" for number in range(2)]
NAMES = {
    TIMELINE: [
        f"{one}{end}" for one in INSTANTS for end in (".deltacommit.requested", ".deltacommit.inflight")
    ],
    HISTORY: ["manifest_1", "_version_"],
    FILES: [f".files-0000-0_{one}.log.1_0-0-0" for one in INSTANTS],
    ANYBODYS: [f"{one}.commit.requested" for one in INSTANTS],
}
FOLDERS = [*NAMES, ".hoodie/metadata/.hoodie"]
PLACES = [f"{folder}/{name}" for folder, names in NAMES.items() for name in names]
NO_FILE, IS_THERE = "FileNotFoundException", "FileAlreadyExistsException"


class Walk:
    """`at`: where something was done last. `said`: what was done, for whoever reads that it went wrong."""

    def __init__(self, there: Held, seed: int) -> None:
        self.there, self.chance = there, random.Random(seed)
        self.held = False
        self.open: dict[str, Any] = {}
        self.at = PLACES[0]
        self.said: list[str] = []

    def step(self) -> None:
        held: dict[Callable[[], str], int] = {
            self.take: 1,
            self.give_back: 1,
            self.create: 8,
            self.begin: 2,
            self.end: 2,
            self.delete: 5,
        }
        free: dict[Callable[[], str], int] = {self.take: 4, self.others_put: 3, self.others_delete: 2}
        acts = held if self.held else free
        self.do(self.chance.choices(list(acts), weights=list(acts.values()))[0])
        for _ in range(self.chance.randrange(3)):
            self.do(self.chance.choice([self.list, self.look]))

    def do(self, act: Callable[[], str]) -> None:
        self.said.append(act.__name__)
        self.said[-1] += f" {act()}"

    def take(self) -> str:
        """Also anew, as a renewal shows itself."""
        self.there.take()
        self.held = True
        return ""

    def give_back(self) -> str:
        """Nothing of ours is being written then."""
        while self.open:
            self.end()
        self.there.give_back()
        self.held = False
        return ""

    def others_put(self) -> str:
        path = self.place()
        self.there.others.put(path, b"x" * self.chance.randrange(1, 9))
        return path

    def others_delete(self) -> str:
        path = self.place()
        self.there.others.delete(path)
        return path

    def create(self) -> str:
        path, overwrite = self.place(), self.chance.random() < 0.3
        before, content = self.stands(path), b"y" * self.chance.randrange(1, 9)
        with self.struck(path) as struck:
            try:
                made = self.there.connector.create(self.there.at(path), overwrite)
                made.write(content)
                made.close()
                assert before is None or overwrite, f"{path} was there, and was made"
            except Py4JJavaError as error:
                found = IS_THERE in str(error)
                assert struck or found, error
                assert not found or before is not None, f"{path} was not there, and could not be made"
        return f"{path} overwrite={overwrite} struck={struck}"

    def begin(self) -> str:
        path = self.place()
        if self.stands(path) is None:
            self.open[path] = self.there.connector.create(self.there.at(path), False)
            self.open[path].write(b"z" * 5)
            return path
        return ""

    def end(self) -> str:
        if not self.open:
            return ""
        path, made = self.open.popitem()
        with self.struck(path) as struck:
            try:
                made.close()
            except Py4JJavaError:
                assert struck
        return f"{path} struck={struck}"

    def delete(self) -> str:
        path = self.place()
        before = self.stands(path)
        with self.struck(path) as struck:
            try:
                done = self.there.connector.delete(self.there.at(path), False)
                assert done == (before is not None), f"{path}: delete said {done}"
            except Py4JJavaError as error:
                assert struck, error
        return f"{path} struck={struck}"

    def list(self) -> str:
        folder = self.at.rpartition("/")[0] if self.chance.random() < 0.8 else self.chance.choice(FOLDERS)
        found = self.there.others.names(folder) if self.is_folder(folder) else []
        try:
            said = sorted(self.there.names(folder))
        except Py4JJavaError as error:
            assert NO_FILE in str(error), error
            said = []
        assert said == sorted(found), f"{folder}: {said} instead of {sorted(found)}"
        return f"{folder}: {len(said)}"

    def look(self) -> str:
        path = self.at if self.chance.random() < 0.5 else self.chance.choice(PLACES)
        stands, size_bytes = self.stands(path), None
        try:
            size_bytes = int(self.there.connector.getFileStatus(self.there.at(path)).getLen())
        except Py4JJavaError as error:
            assert NO_FILE in str(error), error
        assert size_bytes == stands, f"{path}: {size_bytes} bytes instead of {stands}"
        return f"{path}: {stands}"

    def place(self) -> str:
        """Where to do something, which nobody writes at just now."""
        self.at = self.chance.choice([one for one in PLACES if one not in self.open])
        return self.at

    def stands(self, path: str) -> int | None:
        found = self.there.others.stat(path)
        return None if found is None else found.size_bytes

    def is_folder(self, folder: str) -> bool:
        return any(names for _, names in self.there.others.walk(folder))

    @contextmanager
    def struck(self, path: str) -> Iterator[bool]:
        """What is done there is refused now and then, or its answer is lost."""
        blow = self.chance.choice([Blow.FAIL, Blow.LOSE]) if self.chance.random() < 0.3 else None
        lasting = Lasting(requests=CHANGES, under=path, blow=blow) if blow else None
        with self.there.proxy.lasting(lasting) if lasting else nullcontext():
            yield blow is not None


@contextmanager
def reading(there: Held) -> Iterator[None]:
    """Somebody else of this JVM lists folders meanwhile."""
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.001):
            for folder in (TIMELINE, FILES):
                try:
                    there.names(folder)
                except Py4JJavaError as error:
                    assert NO_FILE in str(error) or "status code" in str(error).lower(), error

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()


@pytest.mark.parametrize("seed", range(4))
def test_it_says_what_is_there(there: Held, seed: int) -> None:
    walk = Walk(there, seed)
    with reading(there) if seed % 2 else nullcontext():
        for _ in range(STEPS):
            try:
                walk.step()
            except AssertionError as error:
                raise AssertionError(f"{error}\n" + "\n".join(walk.said[-25:])) from error
        walk.give_back()
