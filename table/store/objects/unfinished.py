"""What obstore cannot ask an S3 server: which uploads were begun and never ended, and objects whose keys end
with `/`, which stand for folders.

Of a worker that was killed the parts that it had uploaded stay, are paid for, and are in no listing.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    NoCredentialsError,
    ReadTimeoutError,
)

from table.errors import Refused
from table.store.objects.aws import client_and_keys
from table.store.objects.bucket import PAGE, Bucket
from table.store.objects.errors import Act, RequestAnswer, told
from table.store.objects.requests import Request
from table.store.objects.settings import ObjectSettings
from table.store.port import Upload

if TYPE_CHECKING:
    from botocore.client import BaseClient

T = TypeVar("T")


class Unfinished:
    """Below the key `root` of a bucket. Methods raise `OSError`."""

    def __init__(self, bucket: Bucket, root: str, settings: ObjectSettings) -> None:
        self._bucket = bucket
        self._root = root
        self._settings = settings

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Those of files in a folder and below it, a request for each thousand."""
        below = "/".join(part for part in (self._root, folder) if part)
        for key, number, begun in self._listed(f"{below}/" if below else ""):
            path = key[len(self._root) + 1 :] if self._root else key
            yield Upload(path=path, number=number, begun=begun)

    def abort(self, upload: Upload) -> None:
        """Its parts are gone then. It may be so already."""
        self._abort(f"{self._root}/{upload.path}" if self._root else upload.path, upload.number)

    def abort_of(self, key: str) -> None:
        """All of one object's."""
        for found, number, _begun in [*self._listed(key)]:
            if found == key:
                self._abort(key, number)

    def delete_below(self, prefix: str) -> None:
        """All objects of a folder and those that stand for it, page by page."""
        wanted = f"{prefix}/" if prefix else ""
        before: list[str] = []
        while True:
            self._bucket.requests.add(Request.LIST)
            with self._asking(Act.LIST, prefix):
                page = self._ask(
                    lambda client: client.list_objects_v2(
                        Bucket=self._bucket.name, Prefix=wanted, MaxKeys=PAGE
                    )
                )
            keys = [one["Key"] for one in page.get("Contents", ())]
            if keys and keys == before:
                raise OSError(errno.EIO, "objects stay though they were deleted", self._bucket.place(keys[0]))
            if keys:
                self._delete(keys)
            if not page.get("IsTruncated"):
                return
            before = keys

    def _delete(self, keys: list[str]) -> None:
        self._bucket.requests.add(Request.DELETE_MANY)
        with self._asking(Act.DELETE, keys[0]):
            objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
            said = self._ask(lambda client: client.delete_objects(Bucket=self._bucket.name, Delete=objects))
        for failed in said.get("Errors", ())[:1]:
            code = failed.get("Code", "")
            answer = RequestAnswer(status=403 if code == "AccessDenied" else 500, code=code)
            raise self._told(answer, Act.DELETE, failed.get("Key", keys[0]))

    def _listed(self, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        marker: dict[str, str] = {}
        while True:
            self._bucket.requests.add(Request.LIST_UPLOADS)
            with self._asking(Act.LIST_UPLOADS, prefix):
                asked = {"Prefix": prefix, "MaxUploads": PAGE, **marker}
                page = self._ask(partial(_uploads, bucket=self._bucket.name, asked=asked))
            for one in page.get("Uploads", ()):
                yield one["Key"], one["UploadId"], one["Initiated"]
            if not page.get("IsTruncated"):
                return
            marker = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def _abort(self, key: str, number: str) -> None:
        self._bucket.requests.add(Request.ABORT)
        with contextlib.suppress(FileNotFoundError), self._asking(Act.ABORT, key):
            self._ask(
                lambda client: client.abort_multipart_upload(
                    Bucket=self._bucket.name, Key=key, UploadId=number
                )
            )

    @contextlib.contextmanager
    def _asking(self, act: Act, key: str) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, Refused) as error:
            raise self._told(_answer(error), act, key) from None

    def _ask(self, asking: Callable[[BaseClient], T]) -> T:
        """As `Bucket.ask`, of botocore's client."""
        client, keys = client_and_keys(self._settings)
        try:
            return asking(client)
        except ClientError as error:
            if not _answer(error).is_of_credentials or not keys.refused():
                raise
        return asking(client)

    def _told(self, answer: RequestAnswer, act: Act, key: str) -> OSError:
        bucket = self._bucket
        return told(answer, act, scheme=bucket.scheme, bucket=bucket.name, place=bucket.place(key))


def _uploads(client: BaseClient, *, bucket: str, asked: Mapping[str, object]) -> Any:
    return client.list_multipart_uploads(Bucket=bucket, **asked)


def _answer(error: BotoCoreError | ClientError | Refused) -> RequestAnswer:
    if isinstance(error, ClientError):
        said = error.response.get("Error", {})
        return RequestAnswer(
            status=int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)),
            code=str(said.get("Code", "")),
            sentence=str(said.get("Message", "")),
        )
    if isinstance(error, Refused):  # who was asked for keys
        return RequestAnswer(status=401, code=Refused.__name__, sentence=str(error))
    if isinstance(error, NoCredentialsError):
        return RequestAnswer(status=401, code="NoCredentials")
    timed_out = isinstance(error, ConnectTimeoutError | ReadTimeoutError)
    return RequestAnswer(broke="Timeout" if timed_out else type(error).__name__)
