"""How the table's store is reached, by `[storage]`; secrets are resolved where they are used, never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lockstep.config.problems import Problem
from lockstep.config.properties import resolve_references
from lockstep.config.table_sections import StorageSection
from table.store.hdfs.settings import HdfsSettings
from table.store.location import AZURE, FILE, GOOGLE, HDFS, S3, Location
from table.store.objects.settings import (
    AccountKey,
    Anonymous,
    AssumedRole,
    ClientSecret,
    Credentials,
    Encryption,
    FixedKeys,
    KeyFile,
    ManagedIdentity,
    ObjectSettings,
    Profile,
    ProviderChain,
    WebIdentity,
)
from table.store.settings import StoreSettings

WANTED: Mapping[str, Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    S3: {
        "chain": ((), ()),
        "profile": (("profile",), ()),
        "role": (("role",), ("profile", "external_id", "role_endpoint")),
        "web_identity": (("role", "token_file"), ()),
        "keys": (("access_key", "secret_key"), ("session_token",)),
    },
    GOOGLE: {"chain": ((), ()), "key_file": (("key_file",), ()), "none": ((), ())},
    AZURE: {
        "account_key": (("account_key",), ()),
        "client_secret": (("tenant", "client_id", "client_secret"), ()),
        "managed_identity": ((), ("client_id",)),
    },
}
"""Scheme -> `storage.credentials` -> what goes with it: what must be given, and what may be."""
OF_CREDENTIALS = tuple(
    dict.fromkeys(
        name for one in WANTED.values() for some in one.values() for names in some for name in names
    )
)
OF_S3_ALONE = ("region", "path_style", "encryption", "kms_key")


def store_settings(
    path: str, given: StorageSection, *, environment: Mapping[str, str] | None = None
) -> StoreSettings | None:
    """None where the table is on a file system. Raises `ConfigError` naming the variable or the file that
    cannot be had, never a value.
    """
    scheme = _scheme(path)
    if scheme == FILE:
        return None
    if scheme == HDFS:
        return HdfsSettings(config_folder=given.config_folder)
    encryption = Encryption(algorithm=given.encryption, kms_key=given.kms_key) if given.encryption else None
    return ObjectSettings(
        endpoint=given.endpoint,
        region=given.region,
        path_style=given.path_style,
        credentials=_credentials(given, environment),
        encryption=encryption,
        part_bytes=given.part_bytes,
    )


def check_storage(path: str, given: StorageSection) -> Iterator[Problem]:
    """What in `[storage]` does not go together."""
    if _scheme(path) == FILE:
        if given != StorageSection():
            sentence = "means nothing to a table on a file system: take it out, or give an address as s3a://"
            yield Problem(settings=("storage", "table.path"), sentence=sentence)
        return
    if _scheme(path) == HDFS:
        if given != StorageSection(config_folder=given.config_folder):
            sentence = "of a table on HDFS only storage.config_folder means anything: take the rest out"
            yield Problem(settings=("storage", "table.path"), sentence=sentence)
        return
    yield from _check_objects(_scheme(path), given)


def _check_objects(scheme: str, given: StorageSection) -> Iterator[Problem]:
    for name in ("config_folder", *(() if scheme == S3 else OF_S3_ALONE)):
        if getattr(given, name):
            sentence = f"means nothing to a table on {scheme}://: take it out"
            yield Problem(settings=(f"storage.{name}", "table.path"), sentence=sentence)
    if given.credentials not in WANTED[scheme]:
        sentence = (
            f'"{given.credentials}" is none of a table on {scheme}://: give {", ".join(WANTED[scheme])}'
        )
        yield Problem(settings=("storage.credentials", "table.path"), sentence=sentence)
        return
    if scheme == AZURE and given.endpoint.startswith("http://") and given.credentials != "account_key":
        sentence = f'is http, and Hadoop sends the tokens of "{given.credentials}" by https only: give https'
        yield Problem(settings=("storage.endpoint", "storage.credentials"), sentence=sentence)
    if given.endpoint.startswith("http://") and given.encryption == "aws:kms":
        sentence = 'is http, and Java\'s library sends what asks for "aws:kms" by https only: give https'
        yield Problem(settings=("storage.endpoint", "storage.encryption"), sentence=sentence)
    needed, allowed = WANTED[scheme][given.credentials]
    for name in needed:
        if not getattr(given, name):
            sentence = f'missing; storage.credentials = "{given.credentials}" needs it'
            yield Problem(settings=(f"storage.{name}", "storage.credentials"), sentence=sentence)
    for name in OF_CREDENTIALS:
        if getattr(given, name) and name not in needed + allowed:
            sentence = f'means nothing to storage.credentials = "{given.credentials}": take it out'
            yield Problem(settings=(f"storage.{name}", "storage.credentials"), sentence=sentence)
    if given.kms_key and not given.encryption.startswith("aws:kms"):
        sentence = 'means nothing without storage.encryption = "aws:kms": take it out, or say so'
        yield Problem(settings=("storage.kms_key", "storage.encryption"), sentence=sentence)


def _scheme(path: str) -> str:
    return Location.parse(path).scheme


def _credentials(given: StorageSection, environment: Mapping[str, str] | None) -> Credentials:
    def resolved(*names: str) -> list[str]:
        asked = {name: getattr(given, name) for name in names}
        found = resolve_references(asked, section="storage", environment=environment)
        return [found[name] for name in names]

    match given.credentials:
        case "profile":
            return Profile(given.profile)
        case "role":
            (external_id,) = resolved("external_id")
            return AssumedRole(
                arn=given.role,
                external_id=external_id,
                profile=given.profile,
                endpoint=given.role_endpoint,
            )
        case "web_identity":
            return WebIdentity(arn=given.role, token_file=given.token_file)
        case "keys":
            return FixedKeys(*resolved("access_key", "secret_key", "session_token"))
        case "key_file":
            return KeyFile(given.key_file)
        case "none":
            return Anonymous()
        case "account_key":
            return AccountKey(*resolved("account_key"))
        case "client_secret":
            (secret,) = resolved("client_secret")
            return ClientSecret(tenant=given.tenant, client_id=given.client_id, secret=secret)
        case "managed_identity":
            return ManagedIdentity(given.client_id)
        case _:
            return ProviderChain()
