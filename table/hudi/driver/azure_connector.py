"""The class by which the driver's JVM writes Azure's files: Hadoop's connector, of which one put makes a
file.

Hadoop's own makes it empty first. An instant that is complete and still empty is what nobody may see, nor
leave behind. Ours is jvm/WholeAbfsFileSystem.java; executors in JVMs of their own, which write nothing that
says what is complete, have Hadoop's.
"""

from __future__ import annotations

from typing import Any

from table.errors import Refused
from table.hudi.driver.compiled import HAVE_PACKAGES, java_class
from table.store.connectors import BLOB_ROOT
from table.store.location import Location

PACKAGE = "org.apache.hadoop.fs.azurebfs"
NAME = f"{PACKAGE}.WholeAbfsFileSystem"
WITHOUT_TLS = f"{PACKAGE}.AzureBlobFileSystem"
"""Hadoop's own, where the endpoint is http: the one that it has for this scheme insists on https."""
CLASSES = frozenset({NAME, WITHOUT_TLS, f"{PACKAGE}.SecureAzureBlobFileSystem"})
"""What we set."""
BLOBS = "AzureBlobs"
"""What connector and lock ask by."""
BESIDE = f"{PACKAGE}.SecureAzureBlobFileSystem"
SETTING = "fs.abfss.impl"
MISFIT = "the connector for tables on Azure does not fit this Hadoop"
FOLDERS = "fs.capability.paths.acls"
"""What a file system of Hadoop's can where folders are there by themselves, and only there."""


def azure_connector(jvm: Any, gateway: Any) -> str:
    """The class's name, by which Hadoop finds it from now on. Raises `Refused` where it does not fit."""
    for name, source in ((f"lockstep.hudi.{BLOBS}", BLOBS), (NAME, NAME.rpartition(".")[2])):
        java_class(
            jvm,
            gateway,
            name=name,
            source=f"{source}.java",
            beside=BESIDE,
            misfit=MISFIT,
            advice=HAVE_PACKAGES,
        )
    return NAME


def connect_azure(jvm: Any, gateway: Any, location: Location, conf: Any, *, here: bool) -> None:
    """`here`: executors are in this JVM; else they have Hadoop's own.

    Hadoop has one connector for a container in each JVM, and `conf` goes from here to executors: the driver's
    is made before that says which is theirs.
    """
    name = azure_connector(jvm, gateway)
    if here:
        conf.set(SETTING, name)
        return
    own = jvm.org.apache.hadoop.conf.Configuration(conf)
    own.set(SETTING, name)
    jvm.org.apache.hadoop.fs.FileSystem.get(_address(jvm, location), own)
    host = location.authority.partition("@")[2]
    http = str(conf.get(f"{BLOB_ROOT}.{host}")).startswith("http://")
    conf.set(SETTING, WITHOUT_TLS if http else BESIDE)


def check_folders(jvm: Any, location: Location, conf: Any) -> None:
    """Raise `Refused` for a storage account in which folders are names of objects. One request."""
    files = jvm.org.apache.hadoop.fs.FileSystem.get(_address(jvm, location), conf)
    if not files.hasPathCapability(jvm.org.apache.hadoop.fs.Path(str(location)), FOLDERS):
        raise Refused(
            f"{location}: its storage account has no hierarchical namespace, without which Hadoop's folders "
            "would be files to others: keep tables in an account that has one (Data Lake Storage Gen2)"
        )


def _address(jvm: Any, location: Location) -> Any:
    return jvm.java.net.URI(f"{location.scheme}://{location.authority}/")
