"""How stores are reached that have to be told. One that is a file system needs nothing."""

from __future__ import annotations

from typing import TypeAlias

from table.errors import Refused
from table.store.hdfs.settings import HdfsSettings
from table.store.objects.settings import ObjectSettings

StoreSettings: TypeAlias = ObjectSettings | HdfsSettings
"""A kind of store with settings of its own adds them here."""


def rust_options(settings: StoreSettings) -> dict[str, str]:
    """The same for readers in Rust that have the same library as ours, `object_store`, and take its words for
    it. Secrets are in it, and credentials that end are those of this moment. Raises `Refused`.
    """
    from table.store.objects.aws import object_store_options  # its libraries are not everywhere

    if isinstance(settings, HdfsSettings):
        raise Refused("readers in Rust know no hdfs://")
    return object_store_options(settings)
