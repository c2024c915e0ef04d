"""How Hadoop's own S3 connector, s3a, reaches what this library reaches: the same settings in its words.

Of one bucket only (`fs.s3a.bucket.*`), so that whatever else the application reads from S3 is left as it is.
Source of the names: hadoop-aws 3.3.4, the one that goes with the Hadoop of Spark 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from table.errors import Refused
from table.port import SparkNeeds
from table.store.connectors import Connector, HadoopSettings, Tuning
from table.store.objects.errors import said_by_sdk
from table.store.objects.settings import (
    DEFAULT_REGION,
    Anonymous,
    AskedKeys,
    AssumedRole,
    Credentials,
    Encryption,
    FixedKeys,
    KeyFile,
    ObjectSettings,
    Profile,
    ProviderChain,
    WebIdentity,
)
from table.store.settings import StoreSettings

CONNECTOR = "org.apache.hadoop:hadoop-aws:3.3.4"
"""Of the very version of Spark's Hadoop: it calls what is not public there."""
SDK = "com.amazonaws:aws-java-sdk-bundle:1.12.262"
S3_NEEDS = SparkNeeds(
    packages=(CONNECTOR, SDK),
    reading=(CONNECTOR, SDK),
    excluded=("org.wildfly.openssl:wildfly-openssl",),  # TLS by a native library, which nobody asks for
)

_CHAIN = "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"
_KEYS = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_KEYS_WITH_TOKEN = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_PROFILE = "com.amazonaws.auth.profile.ProfileCredentialsProvider"
_ROLE = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"
_ENCRYPTED_BY = {"AES256": "AES256", "aws:kms": "SSE-KMS"}

TUNING: Mapping[str, str] = {
    "connection.maximum": "256",
    "threads.max": "64",
    "attempts.maximum": "2",
    "retry.limit": "5",
    "retry.throttle.limit": "7",
    "directory.marker.retention": "keep",
    "block.size": "1048576",
}
"""Where nobody has said otherwise. `connection.maximum`: more than files that are open for reading may keep
(table/hudi/driver/jvm/Connections.java), and those that are written. A request is asked again by the
SDK and by the connector above it: together for some 16 s, less than a guardian lets the table lock be held,
so that a store which is away fails the commit and not the run. A marker that stands for a folder is kept,
which saves a tenth of a commit's requests: Hadoop from 3.3.2 on reads tables that have such. `block.size`: so
much Hudi allocates and clears for each block of its metadata table that it reads, of some kilobytes."""


def s3_settings(settings: StoreSettings, bucket: str) -> HadoopSettings:
    """Raises `Refused` for credentials that Hadoop's connector cannot be told of."""
    assert isinstance(settings, ObjectSettings)
    own = f"fs.s3a.bucket.{bucket}."
    found = _credentials(settings.credentials)
    plain = dict(found.plain)
    if isinstance(settings.credentials, AssumedRole):
        plain |= _token_service(settings.credentials.endpoint, settings.region)
    if settings.endpoint:
        plain["endpoint"] = settings.endpoint
        plain["connection.ssl.enabled"] = str(not settings.endpoint.startswith("http://")).lower()
    if settings.region:
        plain["endpoint.region"] = settings.region
    plain["path.style.access"] = str(settings.path_style).lower()
    plain["connection.establish.timeout"] = str(round(1_000 * settings.connect_timeout_s))
    plain["connection.timeout"] = str(round(1_000 * settings.request_timeout_s))
    if settings.encryption is not None:
        plain |= _encryption(settings.encryption)
    return replace(
        found,
        plain={own + name: value for name, value in plain.items()},
        secret={own + name: value for name, value in found.secret.items()},
        tuning=tuple(
            Tuning(asked=f"fs.s3a.{name}", name=own + name, value=value) for name, value in TUNING.items()
        ),
    )


def _credentials(given: Credentials) -> HadoopSettings:
    """Without the bucket's name before properties."""
    provider = "aws.credentials.provider"
    if isinstance(given, AskedKeys):
        given = given.ask()
    if isinstance(given, ProviderChain):
        return HadoopSettings(plain={provider: _CHAIN})
    if isinstance(given, FixedKeys):
        token = {"session.token": given.token} if given.token else {}
        return HadoopSettings(
            plain={provider: _KEYS_WITH_TOKEN if token else _KEYS},
            secret={"access.key": given.access_key, "secret.key": given.secret_key, **token},
        )
    if isinstance(given, Profile):
        return HadoopSettings(plain={provider: _PROFILE}, profile=given.name)
    if isinstance(given, AssumedRole):
        if given.external_id:
            raise Refused(
                "a role with an external id cannot be assumed by Hadoop's connector: let a profile of AWS's "
                "own files assume it, and name that"
            )
        role = {
            provider: _ROLE,
            "assumed.role.arn": given.arn,
            "assumed.role.session.name": given.session,
            "assumed.role.credentials.provider": _PROFILE if given.profile else _CHAIN,
        }
        return HadoopSettings(plain=role, profile=given.profile)
    if isinstance(given, WebIdentity):
        token = {"AWS_ROLE_ARN": given.arn, "AWS_WEB_IDENTITY_TOKEN_FILE": given.token_file}
        return HadoopSettings(plain={provider: _CHAIN}, environment=token)
    assert isinstance(given, KeyFile | Anonymous)
    raise Refused("a service account's file, or none, is Google's, and no credentials for S3")


def _token_service(endpoint: str, region: str) -> dict[str, str]:
    """Of whom a role is asked for. Of the bucket's region, as on the Python side: where nothing is said, the
    library looks for a region in AWS's own variables and files alone.
    """
    if not endpoint and not region:
        return {}
    own = f"sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    return {
        "assumed.role.sts.endpoint": endpoint or own,
        "assumed.role.sts.endpoint.region": region or DEFAULT_REGION,
    }


def _encryption(asked: Encryption) -> dict[str, str]:
    if asked.algorithm not in _ENCRYPTED_BY:
        raise Refused(
            f"encryption {asked.algorithm} is not known to Hadoop's connector; it knows "
            f"{' and '.join(_ENCRYPTED_BY)}"
        )
    key = {"encryption.key": asked.kms_key} if asked.kms_key else {}
    return {"encryption.algorithm": _ENCRYPTED_BY[asked.algorithm], **key}


S3_CONNECTOR = Connector(needs=S3_NEEDS, settings=s3_settings, said=said_by_sdk)
