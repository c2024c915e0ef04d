"""A container of Azurite's as files and folders, as the DFS endpoint of an account with a hierarchical
namespace has them. What is a file, and whether a condition holds, Azurite says; folders that were made, and
what was appended and not flushed, are kept here. Sources: see `front.py`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import wraps
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import AzureStore

FILE_BYTES_MAX = 256 << 20
FOLDER_TAG = '"0x8FOLDER"'
OWNER = {"x-ms-owner": "$superuser", "x-ms-group": "$superuser", "x-ms-permissions": "rwxr-x---"}
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_NO_CONTAINER = "ContainerNotFound"

T = TypeVar("T", bound=Callable[..., "Answer"])


@dataclass(slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def failed(status: int, code: str, **headers: str) -> Answer:
    """As that endpoint says it: always with a code and a sentence."""
    body = json.dumps({"error": {"code": code, "message": f"It was refused: {code}."}}).encode()
    return Answer(status, {"Content-Type": "application/json", "x-ms-error-code": code, **headers}, body)


@dataclass(slots=True)
class _Written:
    """Of a file that is being written. `tag`: of the blob when the first was appended."""

    tag: str
    pieces: dict[int, bytes] = field(default_factory=dict)


def told(call: T) -> T:
    """What Azurite refuses is told, and never taken for something else."""

    @wraps(call)
    def telling(*given: Any, **named: Any) -> Answer:
        try:
            return call(*given, **named)
        except FileNotFoundError as error:
            missing = _NO_CONTAINER in str(error)
            return failed(404, "FilesystemNotFound" if missing else "PathNotFound")
        except AlreadyExistsError:
            return failed(409, "PathAlreadyExists")
        except PreconditionError:
            return failed(412, "ConditionNotMet")
        except BaseError as error:
            return failed(500, "InternalError", **{"x-ms-said": " ".join(str(error).split())[:200]})

    return telling  # type: ignore[return-value]


class Folders:
    """`root`: of the account, at Azurite."""

    def __init__(self, root: str, *, account: str, key: str) -> None:
        self._root, self._account, self._key = root, account, key
        self._lock = threading.RLock()
        self._stores: dict[str, AzureStore] = {}
        self._made: dict[str, set[str]] = {}
        self._written: dict[tuple[str, str], _Written] = {}

    def _store(self, container: str) -> AzureStore:
        with self._lock:
            if container not in self._stores:
                self._stores[container] = AzureStore(
                    container,
                    account_name=self._account,
                    account_key=self._key,
                    endpoint=self._root,
                    client_options={"allow_http": True},
                )
            return self._stores[container]

    # --- what is there ----------------------------------------------------------------------------------

    def _head(self, container: str, path: str) -> Any:
        """None where no such file is there."""
        try:
            return obstore.head(self._store(container), path)
        except FileNotFoundError as error:
            if _NO_CONTAINER in str(error):
                raise
            return None

    def _is_folder(self, container: str, path: str) -> bool:
        """With what is below it, or because it was made."""
        with self._lock:
            made = self._made.get(container, set())
            if not path or path in made or any(one.startswith(f"{path}/") for one in made):
                return True
        return bool(self._below(container, path, 1))

    def _below(self, container: str, path: str, most: int = 0) -> list[Any]:
        stream = obstore.list(self._store(container), path or None, chunk_size=most or 1_000)
        if most:
            return list(next(stream, []))[:most]
        return [entry for page in stream for entry in page]

    def as_blob(self, container: str, path: str) -> Answer | None:
        """A folder that is looked at by the other endpoint."""
        try:
            if not self._is_folder(container, path):
                return None
        except (FileNotFoundError, BaseError):
            return None
        about = {"x-ms-meta-hdi_isfolder": "true", "x-ms-resource-type": "directory"}
        return Answer(200, {**about, **_dated(datetime.now(UTC)), "ETag": FOLDER_TAG, "Content-Length": "0"})

    @told
    def status(self, container: str, path: str) -> Answer:
        found = self._head(container, path) if path else None
        if found is not None:
            about = {"x-ms-resource-type": "file", "Content-Length": str(found["size"])}
            return Answer(200, {**OWNER, **about, **_dated(found["last_modified"]), "ETag": found["e_tag"]})
        if not path:
            self._below(container, "", 1)  # whether the container is there
        if not self._is_folder(container, path):
            return failed(404, "PathNotFound")
        about = {"x-ms-resource-type": "directory", "Content-Length": "0", "ETag": FOLDER_TAG}
        return Answer(200, {**OWNER, **about, **_dated(datetime.now(UTC))})

    @told
    def listed(self, container: str, folder: str, *, most: int, after: str) -> Answer:
        path = folder.strip("/")
        if path and self._head(container, path) is not None:
            return failed(501, "ListOfAFile")
        found = obstore.list_with_delimiter(self._store(container), path or None)
        if not self._is_folder(container, path):
            return failed(404, "PathNotFound")
        entries = {one["path"]: _entry(one) for one in found["objects"] if one["path"] != path}
        depth = len(path.split("/")) if path else 0
        with self._lock:
            made = [one for one in self._made.get(container, ()) if not path or one.startswith(f"{path}/")]
        for one in [*found["common_prefixes"], *made]:
            name = "/".join(one.strip("/").split("/")[: depth + 1])
            entries.setdefault(name, {"name": name, "isDirectory": "true", **_listed(datetime.now(UTC))})
        names = sorted(name for name in entries if name > after)
        headers = {"Content-Type": "application/json"}
        if len(names) > most:
            headers["x-ms-continuation"] = names[most - 1]
        body = json.dumps({"paths": [entries[name] for name in names[:most]]}).encode()
        return Answer(200, headers, body)

    @told
    def read(self, container: str, path: str, wanted: str, tag: str) -> Answer:
        asked = _RANGE.fullmatch(wanted)
        if asked is None:
            return failed(501, "ReadWithoutRange")
        options: Any = {"range": (int(asked[1]), int(asked[2]) + 1), **({"if_match": tag} if tag else {})}
        try:
            got = obstore.get(self._store(container), path, options=options)
            data = bytes(got.bytes())
        except BaseError as error:
            if "InvalidRange" not in str(error):
                raise
            return failed(416, "InvalidRange")
        at = f"bytes {asked[1]}-{int(asked[1]) + len(data) - 1}/{got.meta['size']}"
        return Answer(206, {"ETag": got.meta["e_tag"] or "", "Content-Range": at}, data)

    # --- files ------------------------------------------------------------------------------------------

    @told
    def create(self, container: str, path: str, conditions: Mapping[str, str]) -> Answer:
        with self._lock:
            if self._is_folder(container, path):
                return failed(409, "PathAlreadyExists", **{"x-ms-existing-resource-type": "directory"})
            self._written.pop((container, path), None)
        answer = self._put(container, path, b"", _mode(conditions), 201)
        self.remember(container, path)
        return answer

    @told
    def append(self, container: str, path: str, position: int, data: bytes) -> Answer:
        found = self._head(container, path)
        if found is None:
            return failed(404, "PathNotFound")
        with self._lock:
            written = self._written.setdefault((container, path), _Written(found["e_tag"]))
            if sum(map(len, written.pieces.values())) + len(data) > FILE_BYTES_MAX:
                return failed(413, "RequestBodyTooLarge")
            written.pieces[position] = data
        return Answer(202, {})

    @told
    def flush(self, container: str, path: str, position: int) -> Answer:
        found = self._head(container, path)
        if found is None:
            return failed(404, "PathNotFound")
        with self._lock:
            written = self._written.pop((container, path), _Written(found["e_tag"]))
        if found["size"] == position and not written.pieces:
            return Answer(200, {"ETag": found["e_tag"], **_dated(found["last_modified"])})
        whole = bytearray(obstore.get(self._store(container), path).bytes() if found["size"] else b"")
        for at in sorted(written.pieces):
            if at != len(whole):
                return failed(400, "InvalidFlushPosition")
            whole += written.pieces[at]
        if len(whole) != position:
            return failed(400, "InvalidFlushPosition")
        return self._put(container, path, bytes(whole), {"e_tag": written.tag}, 200)

    def _put(self, container: str, path: str, data: bytes, mode: Any, status: int) -> Answer:
        made = obstore.put(self._store(container), path, data, mode=mode, use_multipart=False)
        return Answer(status, {"ETag": made["e_tag"] or "", **_dated(datetime.now(UTC))})

    @told
    def rename(self, container: str, source: str, target: str) -> Answer:
        """Of a file. With the lock: by this endpoint nobody sees it at both names."""
        with self._lock:
            found = self._head(container, source)
            if found is None:
                folder = self._is_folder(container, source)
                return failed(501, "RenameOfAFolder") if folder else failed(404, "SourcePathNotFound")
            if self._is_folder(container, target):
                return failed(409, "PathAlreadyExists")
            data = bytes(obstore.get(self._store(container), source).bytes())
            answer = self._put(container, target, data, "create", 201)
            obstore.delete(self._store(container), source)
            return answer

    def remember(self, container: str, path: str) -> None:
        """The folders that it is in, which stay when it goes."""
        parts = path.split("/")
        with self._lock:
            above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
            self._made.setdefault(container, set()).update(above)

    # --- folders ----------------------------------------------------------------------------------------

    @told
    def make(self, container: str, path: str, conditions: Mapping[str, str]) -> Answer:
        if self._head(container, path) is not None:
            return failed(409, "PathAlreadyExists", **{"x-ms-existing-resource-type": "file"})
        if conditions and self._is_folder(container, path):
            return failed(409, "PathAlreadyExists", **{"x-ms-existing-resource-type": "directory"})
        with self._lock:
            self._made.setdefault(container, set()).add(path)
        self.remember(container, path)
        return Answer(201, {"ETag": FOLDER_TAG, **_dated(datetime.now(UTC))})

    @told
    def delete(self, container: str, path: str, *, recursive: bool) -> Answer:
        store = self._store(container)
        if self._head(container, path) is not None:
            obstore.delete(store, path)
            return Answer(200, {})
        if not self._is_folder(container, path):
            return failed(404, "PathNotFound")
        below = self._below(container, path)
        with self._lock:
            made = self._made.setdefault(container, set())
            inside = {one for one in made if one.startswith(f"{path}/")}
            if not recursive and (below or inside):
                return failed(409, "DirectoryNotEmpty")
            made -= {path, *inside}
        for one in below:
            try:
                obstore.delete(store, one["path"])
            except FileNotFoundError:
                continue  # somebody else was at it
        return Answer(200, {})


def _mode(conditions: Mapping[str, str]) -> Any:
    if conditions.get("if-none-match") == "*":
        return "create"
    return {"e_tag": conditions["if-match"]} if "if-match" in conditions else "overwrite"


def _dated(when: datetime) -> dict[str, str]:
    return {"Last-Modified": format_datetime(when.astimezone(UTC), usegmt=True)}


def _listed(when: datetime) -> dict[str, str]:
    about = {"owner": "$superuser", "group": "$superuser", "permissions": "rwxr-x---", "contentLength": "0"}
    return {**about, "lastModified": _dated(when)["Last-Modified"], "etag": FOLDER_TAG}


def _entry(one: Any) -> dict[str, str]:
    about = {"name": one["path"], "contentLength": str(one["size"]), "etag": one["e_tag"] or ""}
    return {**_listed(one["last_modified"]), **about}
