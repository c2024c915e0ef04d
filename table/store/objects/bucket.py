"""One bucket: each request once, counted, and its errors as everybody knows them.

Every object that is put bears a mark of its own, as metadata: a random word that says which put it was. It is
what tells one's own object from another's with the same bytes where an answer was lost.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from table.store.objects.errors import Act, RequestAnswer, told
from table.store.objects.requests import Request, Requests
from table.store.port import Data
from table.store.process import stay_here

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult

    from table.store.objects.clients import Client

KEPT_S = 0.15
"""obstore asks for keys no more often than ten times a second: after so long it has others."""
MARK = "lockstepmark"
"""Azure takes letters and digits only."""
FOLDER = "hdi_isfolder"
"""What Azure says of a folder where folders are there by themselves: it answers as an empty object."""
PAGE = 1_000
"""Objects in an answer to a listing: S3's and Google's limit, which Azure keeps below."""

T = TypeVar("T")

Version: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is known of an object."""

    size_bytes: int
    modified: datetime
    e_tag: str
    version: str
    mark: str
    """Which put it was; empty where somebody else's client made it."""

    @property
    def condition(self) -> Version:
        """To replace this very object."""
        known = {"e_tag": self.e_tag, "version": self.version}
        return {name: value for name, value in known.items() if value}


def new_mark() -> str:
    return uuid.uuid4().hex


class Bucket:
    """Safe to use from any thread. Methods take keys, and raise `OSError`.

    `renewed`: asked when the store refuses the credentials, whether there are others by now: then what was
    refused is asked for again, once.
    """

    def __init__(
        self,
        client: Client,
        *,
        scheme: str,
        name: str,
        requests: Requests,
        renewed: Callable[[], bool] = lambda: False,
    ) -> None:
        self.client = client
        self.scheme = scheme
        self.name = name
        self.requests = requests
        self._renewed = renewed

    def place(self, key: str) -> str:
        return f"{self.scheme}://{self.name}/{key}"

    @contextlib.contextmanager
    def asking(self, act: Act, key: str) -> Iterator[None]:
        """Errors within are told as they are everywhere, and never with what the store's answer held."""
        stay_here()
        try:
            yield
        except (BaseError, OSError) as error:
            raise self.told(error, act, key) from None

    def ask(self, asking: Callable[[], T]) -> T:
        """What the client answers, with credentials that it does not refuse if there are such. Its errors."""
        try:
            return asking()
        except (BaseError, OSError) as error:
            if not RequestAnswer.of(error).is_of_credentials or not self._renewed():
                raise
        time.sleep(KEPT_S)
        return asking()

    def told(self, error: BaseException, act: Act, key: str) -> OSError:
        return told(RequestAnswer.of(error), act, scheme=self.scheme, bucket=self.name, place=self.place(key))

    def head(self, key: str) -> Head | None:
        """None where no such object is there. Whether the bucket is, a listing tells."""
        self.requests.add(Request.HEAD)
        try:
            with self.asking(Act.LOOK, key):
                found = self._look(key)
        except FileNotFoundError:
            return None
        meta = found.meta
        if found.attributes.get(FOLDER) == "true":
            return None
        return Head(
            size_bytes=meta["size"],
            modified=meta["last_modified"],
            e_tag=meta["e_tag"] or "",
            version=meta["version"] or "",
            mark=found.attributes.get(MARK, ""),
        )

    def _look(self, key: str) -> GetResult:
        """The answer to a look that refuses has no body: to a reading it says why, the clock for one."""
        try:
            return self.ask(lambda: obstore.get(self.client, key, options={"head": True}))
        except (BaseError, OSError) as error:
            if not RequestAnswer.of(error).is_silent_refusal:
                raise
            self.requests.add(Request.GET)
            try:
                obstore.get(self.client, key, options={"range": (0, 1)}).bytes()
            except (BaseError, OSError) as said:
                if RequestAnswer.of(said).code:
                    raise
            raise

    def get(self, key: str, begin: int, end: int, *, e_tag: str = "") -> bytes | None:
        """These bytes, fewer where the object is shorter; None where it is no longer the one with this tag.

        `begin` is below the object's size, or 0.
        """
        stay_here()
        self.requests.add(Request.GET)
        options: GetOptions = {"range": (begin, end)}
        if e_tag:
            options["if_match"] = e_tag
        try:
            return self.ask(lambda: bytes(obstore.get(self.client, key, options=options).bytes()))
        except PreconditionError:
            return None
        except (BaseError, OSError) as error:
            if begin == 0 and RequestAnswer.of(error).status == 416:
                return b""  # an empty object has no first byte
            raise self.told(error, Act.READ, key) from None

    def put(self, key: str, data: Data, mark: str) -> None:
        self.requests.add(Request.PUT)
        with self.asking(Act.PUT, key):
            self.ask(
                lambda: obstore.put(
                    self.client, key, _view(data), attributes={MARK: mark}, use_multipart=False
                )
            )

    def put_if(self, key: str, data: Data, mark: str, condition: Version | None) -> bool:
        """Where the object is still this one, None: where none is there. False where the store says that it
        is not, or that somebody else is at it.

        Errors are obstore's own: whoever asks has to know which leave it open.
        """
        stay_here()
        self.requests.add(Request.PUT_IF)
        try:
            self.ask(
                lambda: obstore.put(
                    self.client,
                    key,
                    _view(data),
                    attributes={MARK: mark},
                    mode="create" if condition is None else condition,  # type: ignore[arg-type]
                    use_multipart=False,
                )
            )
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def delete(self, key: str) -> bool:
        """False where the store says that it was not there; S3 never says so.

        Of S3 and Azure obstore deletes one object as it does many.
        """
        self.requests.add(Request.DELETE if self.scheme == "gs" else Request.DELETE_MANY)
        try:
            with self.asking(Act.DELETE, key):
                self.ask(lambda: obstore.delete(self.client, key))
        except FileNotFoundError:
            return False
        return True

    def delete_many(self, keys: list[str]) -> None:
        """No more than `PAGE`; those may be gone already."""
        self.requests.add(Request.DELETE_MANY)
        try:
            with self.asking(Act.DELETE, keys[0]):
                self.ask(lambda: obstore.delete(self.client, keys))
        except FileNotFoundError:
            for key in keys:  # Google and Azure stop at the first that is gone
                self.delete(key)


def _view(data: Data) -> memoryview:
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")
