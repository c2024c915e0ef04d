"""The client of one bucket: obstore's own store for the scheme."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from table.errors import Refused
from table.store.objects.azure import account_of, blob_root
from table.store.objects.settings import (
    AccountKey,
    Anonymous,
    ClientSecret,
    KeyFile,
    ManagedIdentity,
    ObjectSettings,
    ProviderChain,
)
from table.store.process import stay_here

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    Client: TypeAlias = S3Store | GCSStore | AzureStore
    Made: TypeAlias = tuple[Client, Callable[[], bool]]

RETRIES_MAX = 1_000
"""It is patience that ends them. Pauses are drawn: with a base of 2 they hardly grow."""
PAUSES_BASE = 4
FIRST_BACKOFF_S = 0.1
BACKOFF_MAX_S = 5.0
NOBODY = "nobody"


def client_of(scheme: str, authority: str, settings: ObjectSettings) -> Made:
    """`authority`: the bucket, or of `abfss` the container and its account. Raises `Refused`.

    And what is to be told that the store has refused the credentials; it says whether there are others now.
    """
    stay_here()
    options = {
        "client_options": {
            "allow_http": settings.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=settings.connect_timeout_s),
            "timeout": timedelta(seconds=settings.request_timeout_s),
        },
        "retry_config": {
            "max_retries": RETRIES_MAX,
            "retry_timeout": timedelta(seconds=settings.patience_s),
            "backoff": {
                "init_backoff": timedelta(seconds=FIRST_BACKOFF_S),
                "max_backoff": timedelta(seconds=BACKOFF_MAX_S),
                "base": PAUSES_BASE,
            },
        },
    }
    made = {"s3a": _s3, "gs": _gcs, "abfss": _azure}[scheme]
    return made(authority, settings, options)


def _s3(bucket: str, settings: ObjectSettings, options: dict[str, Any]) -> Made:
    from obstore.store import S3Store

    from table.store.objects.aws import key_provider, region_of, session_of

    session, keys = session_of(settings)
    config: dict[str, Any] = {
        "region": region_of(session, settings),
        "virtual_hosted_style_request": not settings.path_style,
    }
    if settings.endpoint:
        config["endpoint"] = _endpoint(bucket, settings)
    if settings.encryption is not None:
        config["server_side_encryption"] = settings.encryption.algorithm
        if settings.encryption.kms_key:
            config["sse_kms_key_id"] = settings.encryption.kms_key
        if settings.encryption.bucket_key:
            config["sse_bucket_key_enabled"] = True
    return S3Store(bucket, credential_provider=key_provider(keys), **options, **config), keys.refused


def _endpoint(bucket: str, settings: ObjectSettings) -> str:
    """obstore wants the bucket's name in the host where it is not to be in the path."""
    if settings.path_style:
        return settings.endpoint
    address = urlsplit(settings.endpoint)
    return urlunsplit(address._replace(netloc=f"{bucket}.{address.netloc}"))


def _gcs(bucket: str, settings: ObjectSettings, options: dict[str, Any]) -> Made:
    from obstore.store import GCSStore

    given = settings.credentials
    config: dict[str, Any] = {"base_url": settings.endpoint} if settings.endpoint else {}
    if isinstance(given, KeyFile):
        config["service_account"] = given.path
    if isinstance(given, Anonymous):
        config["bearer_token"] = NOBODY  # with `skip_signature` it asks for a token all the same, to put
    if isinstance(given, KeyFile | ProviderChain | Anonymous):
        return GCSStore(bucket, **options, **config), _no_others
    raise Refused(
        f"gs://{bucket}: {type(given).__name__} is no credential of Google's: give a key file, or none"
    )


def _azure(authority: str, settings: ObjectSettings, options: dict[str, Any]) -> Made:
    from obstore.store import AzureStore

    given = settings.credentials
    config: dict[str, Any] = {}
    if isinstance(given, AccountKey):
        config["account_key"] = given.key
    elif isinstance(given, ClientSecret):
        config |= {"tenant_id": given.tenant, "client_id": given.client_id, "client_secret": given.secret}
    elif isinstance(given, ManagedIdentity):
        config |= {"client_id": given.client_id} if given.client_id else {}
    else:
        raise Refused(
            f"abfss://{authority}: {type(given).__name__} is no credential of Azure's that driver and "
            "workers both know: give the account's key, a client's secret, or a managed identity"
        )
    container = authority.partition("@")[0]
    config["endpoint"] = blob_root(authority, settings)
    return AzureStore(container, account_name=account_of(authority), **options, **config), _no_others


def _no_others() -> bool:
    """The client's own library renews them."""
    return False
