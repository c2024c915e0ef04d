"""One bucket: each request once, counted, and its errors as everybody knows them.

Every object that is put bears a mark of its own, as metadata: a random word that says which put it was. It is
what tells one's own object from another's with the same bytes where an answer was lost.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from table.store.objects.errors import Act, RequestAnswer, told
from table.store.objects.process import stay_here
from table.store.objects.requests import Request, Requests
from table.store.port import Data

if TYPE_CHECKING:
    from obstore import GetOptions

    from table.store.objects.clients import Client

MARK = "lockstepmark"
"""Azure takes letters and digits only."""
PAGE = 1_000
"""Objects in an answer to a listing: S3's and Google's limit, which Azure keeps below."""

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
    """Safe to use from any thread. Methods take keys, and raise `OSError`."""

    def __init__(self, client: Client, *, scheme: str, name: str, requests: Requests) -> None:
        self.client = client
        self.scheme = scheme
        self.name = name
        self.requests = requests

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

    def told(self, error: BaseException, act: Act, key: str) -> OSError:
        return told(RequestAnswer.of(error), act, scheme=self.scheme, bucket=self.name, place=self.place(key))

    def head(self, key: str) -> Head | None:
        """None where no such object is there. Whether the bucket is, a listing tells."""
        self.requests.add(Request.HEAD)
        try:
            with self.asking(Act.LOOK, key):
                found = obstore.get(self.client, key, options={"head": True})
        except FileNotFoundError:
            return None
        meta = found.meta
        return Head(
            size_bytes=meta["size"],
            modified=meta["last_modified"],
            e_tag=meta["e_tag"] or "",
            version=meta["version"] or "",
            mark=found.attributes.get(MARK, ""),
        )

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
            return bytes(obstore.get(self.client, key, options=options).bytes())
        except PreconditionError:
            return None
        except (BaseError, OSError) as error:
            if begin == 0 and RequestAnswer.of(error).status == 416:
                return b""  # an empty object has no first byte
            raise self.told(error, Act.READ, key) from None

    def put(self, key: str, data: Data, mark: str) -> None:
        self.requests.add(Request.PUT)
        with self.asking(Act.PUT, key):
            obstore.put(self.client, key, _view(data), attributes={MARK: mark}, use_multipart=False)

    def put_if(self, key: str, data: Data, mark: str, condition: Version | None) -> bool:
        """Where the object is still this one, None: where none is there. False where the store says that it
        is not, or that somebody else is at it.

        Errors are obstore's own: whoever asks has to know which leave it open.
        """
        stay_here()
        self.requests.add(Request.PUT_IF)
        try:
            obstore.put(
                self.client,
                key,
                _view(data),
                attributes={MARK: mark},
                mode="create" if condition is None else condition,  # type: ignore[arg-type]
                use_multipart=False,
            )
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def delete(self, key: str) -> bool:
        """False where the store says that it was not there; S3 never says so.

        Of S3 obstore deletes one object as it does many.
        """
        self.requests.add(Request.DELETE_MANY if self.scheme == "s3a" else Request.DELETE)
        try:
            with self.asking(Act.DELETE, key):
                obstore.delete(self.client, key)
        except FileNotFoundError:
            return False
        return True

    def delete_many(self, keys: list[str]) -> None:
        """No more than `PAGE`; those may be gone already."""
        self.requests.add(Request.DELETE_MANY)
        try:
            with self.asking(Act.DELETE, keys[0]):
                obstore.delete(self.client, keys)
        except FileNotFoundError:
            for key in keys:  # Google and Azure stop at the first that is gone
                self.delete(key)


def _view(data: Data) -> memoryview:
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")
