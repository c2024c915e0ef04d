"""How an object store is reached, as plain values: whoever reads a configuration makes them.

They say where credentials come from. Those that hold a secret themselves do not show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

MIB = 1024 * 1024
DEFAULT_REGION = "us-east-1"
"""S3's, where nobody says another."""
PART_BYTES_LEAST = 5 * MIB
"""S3 takes smaller parts at the end of a file only."""
STREAMS_LEAST = 4
"""So many large files are to be on their way at once, within what their writer may take of memory."""


@dataclass(frozen=True, slots=True)
class ProviderChain:
    """Whatever the provider's own tools find: variables, files, the machine's or the pod's own role."""


@dataclass(frozen=True, slots=True)
class Profile:
    """S3: a profile of AWS's own files, which may name a role or a process to ask."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedRole:
    """S3: a role that is assumed, and again before it ends."""

    arn: str
    session: str = "lockstep"
    external_id: str = field(default="", repr=False)
    profile: str = ""
    """Who assumes it; empty: the chain."""
    endpoint: str = ""
    """Of whom it is asked; empty: of AWS's own service in the bucket's region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebIdentity:
    """S3: a role that a token in a file is exchanged for, and again before it ends."""

    arn: str
    token_file: str
    session: str = "lockstep"


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """S3: an access key and its secret."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """Keys that somebody else knows, such as one who resolves references to secrets: asked again every ten
    minutes, so that they may change.
    """

    ask: Callable[[], FixedKeys]


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Google: a service account's file."""

    path: str


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Google: none at all, for a server of one's own that asks for none."""


@dataclass(frozen=True, slots=True)
class AccountKey:
    """Azure: a key of the storage account, in Base64."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """Azure: an application of a tenant, and its secret."""

    tenant: str
    client_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ManagedIdentity:
    """Azure: the identity of the machine; where it has several, the one with this client id."""

    client_id: str = ""


Credentials: TypeAlias = (
    ProviderChain
    | Profile
    | AssumedRole
    | WebIdentity
    | FixedKeys
    | AskedKeys
    | KeyFile
    | Anonymous
    | AccountKey
    | ClientSecret
    | ManagedIdentity
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """S3: how the server is to encrypt what is put: `AES256`, `aws:kms`, `aws:kms:dsse`."""

    algorithm: str
    kms_key: str = ""
    bucket_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSettings:
    """How a store is reached, and how much of it at once."""

    endpoint: str = ""
    """Empty for the provider's own; `http://` only where it says so."""
    region: str = ""
    """Empty for the one that the provider's own tools find."""
    path_style: bool = False
    """The bucket is the first part of the path, and not of the host's name."""
    credentials: Credentials = ProviderChain()
    encryption: Encryption | None = None
    part_bytes: int = 8 * MIB
    """A file that is smaller is put at once; a larger one in parts of so much."""
    parts_at_once: int = 3
    """So many are on their way while another is filled."""
    read_ahead_bytes: int = MIB
    """Asked for where a reader wants a few bytes."""
    connect_timeout_s: float = 5.0
    request_timeout_s: float = 30.0
    patience_s: float = 60.0
    """A request is asked again for so long, with a back-off, where the server is away, is slow, or asks for
    less.
    """

    @property
    def sink_bytes_max(self) -> int:
        """What a file that is being written takes of memory at most, about."""
        return self.part_bytes * (self.parts_at_once + 1)

    def within(self, bytes_max: int) -> ObjectSettings:
        """The same, with parts that let several files be written in so much memory. One needs two of the
        smallest parts, however little that is.
        """
        each_bytes = bytes_max // STREAMS_LEAST
        part_bytes = min(self.part_bytes, max(PART_BYTES_LEAST, each_bytes // 2))
        at_once = min(self.parts_at_once, max(1, each_bytes // part_bytes - 1))
        return replace(self, part_bytes=part_bytes, parts_at_once=at_once)
