"""Where a table is, as its configuration says it. Read here and nowhere else."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from table.errors import Refused
from table.store.paths import CONTROL, key_of
from table.store.port import Store
from table.store.settings import StoreSettings

FILE = "file"
S3 = "s3a"
GOOGLE = "gs"
AZURE = "abfss"
HDFS = "hdfs"
STORES: Mapping[str, str] = {
    FILE: "table.store.local:local_store",
    **dict.fromkeys((S3, GOOGLE, AZURE), "table.store.objects.store:object_store"),
    HDFS: "table.store.hdfs.store:hdfs_store",
}
"""Scheme -> what makes the store whose root a `Location` is, as `module:function`. It is given the location
and its `StoreSettings`, None where nobody says how it is reached; it raises `Refused`.
"""
TABLES = frozenset({FILE, S3, GOOGLE, AZURE, HDFS})
"""Schemes of what a table can be on: the driver's JVM reaches it, too."""
BUCKETS = frozenset({S3, GOOGLE, AZURE})
"""Schemes of object stores."""
SPELLINGS = {
    **{one: one for one in (FILE, S3, GOOGLE, AZURE, HDFS)},
    **{"s3": S3, "s3n": S3, "abfs": AZURE},
}
"""As people write it -> as Spark's connectors of today do."""
OLD = {"wasb": AZURE, "wasbs": AZURE, "adl": AZURE}
EXAMPLES = {
    FILE: "file:///data/lake/events",
    S3: "s3a://bucket/lake/events",
    GOOGLE: "gs://bucket/lake/events",
    AZURE: "abfss://container@account.dfs.core.windows.net/lake/events",
    HDFS: "hdfs://cluster/lake/events",
}
HDFS_PORT = ":8020"
OBJECTS = "objects"
"""The extra of the package that brings the library of object stores. That of HDFS is called as its scheme."""

KNOWN_TO_RUST = frozenset({FILE, S3})
"""Schemes that readers in Rust reach with `table.store.settings.rust_options`."""

_SCHEME = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)$", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_CONTAINER = re.compile(r"[a-z0-9$][a-z0-9-]{2,62}@[a-z0-9]{3,24}(\.[a-z0-9-]+)*\.dfs(\.[a-z0-9-]+)+")
_NAME_NODE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?)?")


@dataclass(frozen=True, slots=True)
class Location:
    """Equal for every spelling of one place."""

    scheme: str
    """Of `SPELLINGS`."""
    authority: str
    """A bucket, a container and its account, a cluster or its name node, nothing."""
    path: str
    """Begins with `/` and does not end with it."""

    def __str__(self) -> str:
        """As Spark spells it."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @classmethod
    def parse(cls, text: str, *, setting: str = "table.path") -> Location:
        """Of an address, or of an absolute path. Raises `Refused` with a sentence."""
        match = _SCHEME.match(text)
        written = match["scheme"].lower() if match else FILE
        scheme = _scheme(written, text, setting)
        rest = match["rest"] if match else text
        if scheme == FILE:
            authority, path = _split(rest) if rest.startswith("//") else ("", rest)
            if authority not in ("", "localhost"):
                raise Refused(f"{setting} {text}: it names the host {authority}; write file:/// and the path")
            return cls(FILE, "", _file_path(path, text, setting))
        if not rest.startswith("//"):
            raise Refused(f"{setting} {text}: write {scheme}:// and what follows, such as {EXAMPLES[scheme]}")
        authority, path = _split(rest)
        return cls(scheme, _authority(scheme, authority, setting), _object_path(scheme, path, text, setting))


def plain(path: str, *, setting: str = "table.path") -> str:
    """How the same place is written everywhere within: the plain path of one on a file system, else the
    address. Raises `Refused` for what is neither.
    """
    location = Location.parse(path, setting=setting)
    return location.path if location.scheme == FILE else str(location)


def known_to_rust(path: str) -> bool:
    """Whether a reader in Rust reads what is at this path or address; else it is given a copy."""
    return Location.parse(path).scheme in KNOWN_TO_RUST


def why_no_folder(path: str, name: str) -> str:
    """Why a folder of this name is not found by all who reach the store of this path or address; empty where
    it is.
    """
    match = _SCHEME.match(path)
    scheme = SPELLINGS.get(match["scheme"].lower(), FILE) if match else FILE
    if scheme in BUCKETS and "\\" in name:  # SeaweedFS puts `a\b` into `b` of `a`
        return "a value with '\\' names no folder in an object store: some servers take it for '/'"
    if scheme == AZURE and name.endswith("."):
        return "a value that ends with a dot names no folder on Azure: Hadoop does not write there"
    return ""


def not_yet(scheme: str, what: str) -> str:
    """Why tables are not there yet, as a sentence."""
    return (
        f"{what}: {scheme}:// is not supported yet: tables are on file systems that driver and workers "
        "share, file://, on HDFS, hdfs://, in S3, s3a://, in Google's storage, gs://, and in Azure's, abfss://"
    )


def store_at(path: str, *, setting: str = "table.path", settings: StoreSettings | None = None) -> Store:
    """The store whose root is this path or address. Raises `Refused` where there is none for it.

    `settings`: how an object store is reached.
    """
    location = Location.parse(path, setting=setting)
    if settings is None and location.scheme != FILE:
        raise Refused(
            f"{setting} {path}: it can only be on a file system that driver and workers share: give a path "
            "that begins with file://"
        )
    try:
        made: Store = resolve_name(STORES[location.scheme])(location, settings)
    except ImportError as error:
        raise Refused(
            f"{setting} {path}: the library {error.name} is missing here: pip install "
            f"'lockstep[{HDFS if location.scheme == HDFS else OBJECTS}]'"
        ) from error
    return made


def _scheme(written: str, text: str, setting: str) -> str:
    if written in OLD:
        raise Refused(
            f"{setting} {text}: {written}:// is not supported; Azure's storage is written {EXAMPLES[AZURE]}"
        )
    if written not in SPELLINGS:
        raise Refused(
            f"{setting} {text}: {written}:// is not supported; give a path that begins with file://"
        )
    return SPELLINGS[written]


def _split(rest: str) -> tuple[str, str]:
    authority, slash, path = rest[2:].partition("/")
    return authority, slash + path


def _file_path(path: str, text: str, setting: str) -> str:
    if not path.startswith("/") or not path.strip("/"):
        raise Refused(f"{setting} {text}: it must be absolute, such as {EXAMPLES[FILE]}")
    if CONTROL.search(path):
        raise Refused(f"{setting} {text!r}: it holds a control character")
    if ".." in path.split("/"):
        raise Refused(f"{setting} {text}: it holds '..': write the path that is meant")
    return "/" + posixpath.normpath(path).lstrip("/")


def _authority(scheme: str, authority: str, setting: str) -> str:
    """What it holds is in no message: somebody may have written a secret into it."""
    if scheme != AZURE and "@" in authority:
        raise Refused(
            f"{setting}: the address holds credentials, before an @: take them out of it, and out of "
            "wherever it was copied to"
        )
    lower = authority if scheme in (S3, GOOGLE) else authority.lower()
    form = {AZURE: _CONTAINER, HDFS: _NAME_NODE}.get(scheme, _BUCKET)
    if not form.fullmatch(lower):
        raise Refused(f"{setting}: what follows {scheme}:// is no name of the kind of {EXAMPLES[scheme]}")
    return lower.removesuffix(HDFS_PORT) if scheme == HDFS else lower


def _object_path(scheme: str, path: str, text: str, setting: str) -> str:
    """Parts are taken as they are: `%20` is three characters."""
    plain = path.strip("/") if scheme == HDFS else path.removeprefix("/").removesuffix("/")
    if not plain:
        raise Refused(
            f"{setting} {text}: it names no folder, and a table does not share one with others; such as "
            f"{EXAMPLES[scheme]}"
        )
    if scheme == AZURE and any(part.endswith(".") for part in plain.split("/")):
        raise Refused(f"{setting} {text}: a part of it ends with a dot, which Hadoop does not write on Azure")
    if "?" in plain or "#" in plain:
        raise Refused(f"{setting} {text}: it holds ? or #, which Hadoop reads as something else")
    try:
        key_of("", plain)
    except OSError as error:
        raise Refused(f"{setting} {text!r}: {error.strerror}: write the path without it") from None
    return f"/{plain}"
