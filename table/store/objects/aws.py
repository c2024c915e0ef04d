"""S3's credentials, for weeks, and the client for what obstore cannot ask: botocore.

obstore knows keys, the machine's role and web identity; it knows no profiles and assumes no role. Botocore
finds what AWS's own tools find, and renews what ends; obstore asks here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.client import BaseClient
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    AssumeRoleWithWebIdentityCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    Credentials,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import FileWebIdentityTokenLoader

from table.errors import Refused
from table.store.objects.keys import GOOD_FOR_S, Keys, Renewed
from table.store.objects.settings import (
    DEFAULT_REGION,
    AskedKeys,
    AssumedRole,
    FixedKeys,
    KeyFile,
    ObjectSettings,
    Profile,
    WebIdentity,
)
from table.store.objects.settings import Credentials as CredentialsGiven

if TYPE_CHECKING:
    from obstore.store import S3Credential

logging.getLogger("botocore.credentials").setLevel(logging.ERROR)
"""It shows where in itself a renewal failed; in a sentence whoever asked says why."""

GOOD_FOR = timedelta(minutes=1)
"""Keys that are handed out are said to be good for so long, so that they are asked for again."""
CLIENTS_MAX = 16


def session_of(settings: ObjectSettings) -> tuple[botocore.session.Session, Keys]:
    """A session of botocore's, and the credentials that it signs with. Raises `Refused` where they cannot be
    had.
    """
    keys = Keys(lambda: _found(settings))
    session = _session(settings.credentials)
    session.register_component("credential_provider", CredentialResolver([_Known(Renewed(keys))]))
    return session, keys


def _session(given: CredentialsGiven) -> botocore.session.Session:
    """Whose profile's file, if any, is read by it, once."""
    profile = given.name if isinstance(given, Profile) else ""
    profile = given.profile if isinstance(given, AssumedRole) else profile
    return botocore.session.Session(profile=profile or None)


def _found(settings: ObjectSettings) -> Credentials:
    try:
        found = _credentials(_session(settings.credentials), settings)
    except BotoCoreError as error:
        raise Refused(f"no credentials for S3 can be had: {error}") from None
    if found is None:
        raise Refused(
            "no credentials for S3 were found: set AWS's variables, or give a profile, a role or keys"
        )
    return found


def region_of(session: botocore.session.Session, settings: ObjectSettings) -> str:
    return settings.region or session.get_config_variable("region") or DEFAULT_REGION


def key_provider(keys: Keys) -> Callable[[], S3Credential]:
    """What obstore asks for keys. It asks again where the last ones end within five minutes, ten times a
    second at most: so those of each request are those of now.
    """

    def provide() -> S3Credential:
        frozen = keys.now()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + GOOD_FOR,
        }

    return provide


def object_store_options(settings: ObjectSettings) -> dict[str, str]:
    """For a client of the Rust library `object_store` that is not ours. Raises `Refused`."""
    session, known = session_of(settings)
    keys = key_provider(known)()
    options = {
        "aws_access_key_id": keys["access_key_id"],
        "aws_secret_access_key": keys["secret_access_key"],
        "aws_region": region_of(session, settings),
        "aws_virtual_hosted_style_request": str(not settings.path_style).lower(),
    }
    if token := keys.get("token"):
        options["aws_session_token"] = token
    if settings.endpoint:
        options["aws_endpoint"] = settings.endpoint
        options["aws_allow_http"] = str(settings.endpoint.startswith("http://")).lower()
    return options


def s3_client(settings: ObjectSettings, *, timeout_s: float = 0.0, attempts_max: int = 4) -> BaseClient:
    """`client_and_keys`, the client."""
    return client_and_keys(settings, timeout_s=timeout_s, attempts_max=attempts_max)[0]


@lru_cache(maxsize=CLIENTS_MAX)
def client_and_keys(
    settings: ObjectSettings, *, timeout_s: float = 0.0, attempts_max: int = 4
) -> tuple[BaseClient, Keys]:
    """Botocore's own client, for buckets, unfinished uploads and what stands for folders. Making one takes a
    third of a second; one does for all threads.
    """
    session, keys = session_of(settings)
    client = session.create_client(
        "s3",
        endpoint_url=settings.endpoint or None,
        region_name=region_of(session, settings),
        config=Config(
            s3={"addressing_style": "path" if settings.path_style else "auto"},
            connect_timeout=timeout_s or settings.connect_timeout_s,
            read_timeout=timeout_s or settings.request_timeout_s,
            retries={"mode": "standard", "total_max_attempts": attempts_max},
            request_checksum_calculation="when_required",  # not every server knows the newer ones
            response_checksum_validation="when_required",
        ),
    )
    return client, keys


def _credentials(session: botocore.session.Session, settings: ObjectSettings) -> Credentials | None:
    given = settings.credentials
    if isinstance(given, FixedKeys):
        return Credentials(given.access_key, given.secret_key, given.token or None)
    if isinstance(given, AskedKeys):
        return DeferredRefreshableCredentials(refresh_using=lambda: _asked(given), method="lockstep-asked")
    if isinstance(given, AssumedRole):
        role = AssumeRoleCredentialFetcher(
            client_creator=_token_service(session, settings, given.endpoint),
            source_credentials=session.get_credentials(),
            role_arn=given.arn,
            extra_args={
                "RoleSessionName": given.session,
                **({"ExternalId": given.external_id} if given.external_id else {}),
            },
        )
        return _renewing(role.fetch_credentials, given.arn, method="assume-role")
    if isinstance(given, WebIdentity):
        identity = AssumeRoleWithWebIdentityCredentialFetcher(
            client_creator=_token_service(session, settings),
            web_identity_token_loader=FileWebIdentityTokenLoader(given.token_file),
            role_arn=given.arn,
            extra_args={"RoleSessionName": given.session},
        )
        return _renewing(identity.fetch_credentials, given.arn, method="web-identity")
    if isinstance(given, KeyFile):
        raise Refused("a service account's file is Google's, and no credentials for S3")
    return session.get_credentials()


def _token_service(
    session: botocore.session.Session, settings: ObjectSettings, endpoint: str = ""
) -> Callable[..., BaseClient]:
    """What makes the client of who gives out roles: in the bucket's region, for botocore knows none without
    AWS's own variables or files, and then asks nobody.
    """
    return partial(
        session.create_client, region_name=region_of(session, settings), endpoint_url=endpoint or None
    )


def _renewing(fetch: Callable[[], dict[str, Any]], arn: str, *, method: str) -> Credentials:
    def fetched() -> dict[str, Any]:
        try:
            return fetch()
        except (BotoCoreError, ClientError, OSError) as error:
            permission = "sts:AssumeRole" if method == "assume-role" else "sts:AssumeRoleWithWebIdentity"
            raise Refused(
                f"the role {arn} cannot be assumed ({error}): whoever assumes it must be allowed "
                f"{permission}, and the role must trust him"
            ) from None

    return DeferredRefreshableCredentials(refresh_using=fetched, method=method)


def _asked(given: AskedKeys) -> dict[str, Any]:
    keys = given.ask()
    # Botocore asks again 15 minutes before they end.
    ends = datetime.now(UTC) + timedelta(minutes=15, seconds=GOOD_FOR_S)
    return {
        "access_key": keys.access_key,
        "secret_key": keys.secret_key,
        "token": keys.token or None,
        "expiry_time": ends.isoformat(),
    }


class _Known(CredentialProvider):  # type: ignore[misc]  # botocore has no types
    """Those that were found already."""

    METHOD = CANONICAL_NAME = "lockstep"

    def __init__(self, found: Credentials) -> None:
        super().__init__()
        self._found = found

    def load(self) -> Credentials:
        return self._found
