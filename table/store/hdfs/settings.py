"""How HDFS is reached. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsSettings:
    """What the cluster's own configuration does not say."""

    config_folder: str = ""
    """Of `core-site.xml` and `hdfs-site.xml`; empty: `HADOOP_CONF_DIR`, where that is set. It says what the
    name nodes of a name service are.
    """
    principal: str = ""
    """Kerberos: whose keytab it is. Empty: the ticket that this process has, where the cluster wants one."""
    keytab: str = ""
    """A file."""
    write_bytes: int = 4 * MIB
    """So much of a file that is being written is handed over at once, and is held until then."""
    patience_s: float = 60.0
    """A call has so long, with what the client asks again meanwhile: name nodes that are away or stand by."""

    @property
    def sink_bytes_max(self) -> int:
        """What a file that is being written takes of memory at most, about; 8 MiB are the client's."""
        return self.write_bytes + 8 * MIB
