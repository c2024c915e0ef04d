"""What the driver's JVM needs to reach where a table is: one entry for each kind of storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name

from table.errors import Refused
from table.port import SparkNeeds
from table.store.location import AZURE, GOOGLE, HDFS, S3, Location, not_yet
from table.store.settings import StoreSettings

CONNECTORS: Mapping[str, str] = {
    S3: "table.store.objects.hadoop:S3_CONNECTOR",
    HDFS: "table.store.hdfs.hadoop:HDFS_CONNECTOR",
    GOOGLE: "table.store.objects.hadoop_google:GOOGLE_CONNECTOR",
    AZURE: "table.store.objects.hadoop_azure:AZURE_CONNECTOR",
}
"""Scheme -> a `Connector`, as `module:name`. A file system needs none."""

BLOB_ROOT = "fs.azure.lockstep.blob.root"
"""A property of ours: the address of an Azure account's blobs, for table/hudi/driver/jvm/AzureBlobs.java."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A property `name`, which is set where nobody has said anything of the property `asked`."""

    asked: str
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopSettings:
    """`plain`: properties. `secret`: those that are nobody's to see, by the same names. `resources`: files of
    Hadoop's configuration that count before what the JVM has by itself. `profile`: of AWS's own files, which
    the SDK knows by a property of the JVM. `environment`: what variables must say, since it finds that
    nowhere else.
    """

    plain: Mapping[str, str]
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    resources: tuple[str, ...] = ()
    tuning: tuple[Tuning, ...] = ()
    profile: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def silent(_message: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """One of Hadoop's, for a kind of storage. `settings`: of a bucket; raises `Refused` for what it cannot be
    told. `said`: what its exceptions mean, as a sentence; empty where that is no refusal.
    """

    needs: SparkNeeds
    settings: Callable[[StoreSettings, str], HadoopSettings]
    said: Callable[[str], str] = silent


def store_needs(path: str) -> SparkNeeds:
    """Of the store that this path or address is in. Raises `Refused` for what is none."""
    scheme = Location.parse(path).scheme
    return _connector(scheme).needs if scheme in CONNECTORS else SparkNeeds()


def hadoop_settings(location: Location, settings: StoreSettings) -> HadoopSettings:
    """Raises `Refused` where no JVM can be told how to reach it."""
    if location.scheme not in CONNECTORS:
        raise Refused(not_yet(location.scheme, str(location)))
    return _connector(location.scheme).settings(settings, location.authority)


def said_by_connectors(message: str) -> str:
    """What a Java exception's message means where a store has refused; empty where none has."""
    return next((said for scheme in CONNECTORS if (said := _connector(scheme).said(message))), "")


def _connector(scheme: str) -> Connector:
    found: Connector = resolve_name(CONNECTORS[scheme])
    return found
