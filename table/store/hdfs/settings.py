"""How HDFS is reached. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

MIB = 1 << 20
CLIENT_BYTES = 8 * MIB
"""What hdfs-native takes for a file that is being written, about: packets that no data node has answered."""
WRITE_BYTES_LEAST = 64 * 1_024
STREAMS_LEAST = 4
"""So many files are to be written at once."""


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

    def within(self, bytes_max: int) -> HdfsSettings:
        """The same, with pieces that let several files be written in so much memory."""
        each_bytes = bytes_max // STREAMS_LEAST - CLIENT_BYTES
        return replace(self, write_bytes=max(WRITE_BYTES_LEAST, min(self.write_bytes, each_bytes)))
