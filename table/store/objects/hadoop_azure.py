"""How Hadoop's own connector for Azure, abfss, reaches what this library reaches: the same settings in its
words.

Of one account only where the connector looks for that: then properties take the account's host at their end.
Source of the names, and of which is looked for how: hadoop-azure 3.3.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from table.errors import Refused
from table.port import SparkNeeds
from table.store.connectors import BLOB_ROOT, Connector, HadoopSettings, Tuning
from table.store.objects.azure import account_of, blob_root
from table.store.objects.errors_azure import said_by_abfs
from table.store.objects.settings import (
    AccountKey,
    ClientSecret,
    Credentials,
    ManagedIdentity,
    ObjectSettings,
)
from table.store.settings import StoreSettings

CONNECTOR = "org.apache.hadoop:hadoop-azure:3.3.4"
"""Of the very version of Spark's Hadoop."""
AZURE_NEEDS = SparkNeeds(
    packages=(CONNECTOR,),
    reading=(CONNECTOR,),
    excluded=(  # of its older connector, of which nothing is used, or in Spark in versions of its own
        "com.fasterxml.jackson.core:jackson-core",
        "com.google.guava:guava",
        "com.microsoft.azure:azure-keyvault-core",
        "com.microsoft.azure:azure-storage",
        "commons-codec:commons-codec",
        "commons-logging:commons-logging",
        "org.apache.hadoop.thirdparty:hadoop-shaded-guava",
        "org.apache.httpcomponents:httpclient",
        "org.codehaus.jackson:jackson-core-asl",
        "org.codehaus.jackson:jackson-mapper-asl",
        "org.eclipse.jetty:jetty-util-ajax",
        "org.slf4j:slf4j-api",
        "org.wildfly.openssl:wildfly-openssl",
    ),
)

AUTH, PROVIDER = "fs.azure.account.auth.type", "fs.azure.account.oauth.provider.type"
KEY = "fs.azure.account.key"
CLIENT = "fs.azure.account.oauth2.client"
MSI_TENANT = "fs.azure.account.oauth2.msi.tenant"
_PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2."
AUTHORITY = "https://login.microsoftonline.com"
PORTS = {"http": 80, "https": 443}

TUNING: Mapping[str, str] = {
    "fs.azure.io.retry.max.retries": "4",
    "fs.azure.io.retry.min.backoff.interval": "500",
    "fs.azure.io.retry.backoff.interval": "500",
    "fs.azure.io.retry.max.backoff.interval": "4000",
    "fs.azure.block.size": "1048576",
}
"""Where nobody has said otherwise, in milliseconds and bytes. Hadoop's own asks 30 times, for a quarter of an
hour: so a store that is away fails a commit and not the run. `block.size`: as of S3."""


def azure_settings(settings: StoreSettings, authority: str) -> HadoopSettings:
    """Raises `Refused` for what Hadoop's connector cannot be told."""
    assert isinstance(settings, ObjectSettings)
    host = authority.partition("@")[2]
    plain, secret = _credentials(settings.credentials, authority)
    plain |= {BLOB_ROOT: blob_root(authority, settings)}
    # HADOOP-18546: in this version what one stream reads ahead may get into another's buffer.
    of_all = {"fs.azure.readaheadqueue.depth": "0"}
    if settings.endpoint:
        at = urlsplit(settings.endpoint)
        if at.scheme == "http" and AUTH in plain and plain[AUTH] == "OAuth":
            raise Refused(
                f"abfss://{authority}: Hadoop's connector sends tokens by https only, and the endpoint is "
                "http: give one of https, or the account's key"
            )
        plain["fs.azure.abfs.endpoint"] = f"{at.hostname}:{at.port or PORTS[at.scheme]}"
        of_all["fs.azure.always.use.https"] = str(at.scheme == "https").lower()
    return HadoopSettings(
        plain={**of_all, **{f"{name}.{host}": value for name, value in plain.items()}},
        secret={f"{name}.{host}": value for name, value in secret.items()},
        tuning=tuple(Tuning(asked=name, name=name, value=value) for name, value in TUNING.items()),
    )


def _credentials(given: Credentials, authority: str) -> tuple[dict[str, str], dict[str, str]]:
    """Plain, and secret, without the account's host after properties."""
    if isinstance(given, AccountKey):
        return {AUTH: "SharedKey"}, {KEY: given.key}
    if isinstance(given, ClientSecret):
        plain = {
            AUTH: "OAuth",
            PROVIDER: f"{_PROVIDERS}ClientCredsTokenProvider",
            f"{CLIENT}.endpoint": f"{AUTHORITY}/{given.tenant}/oauth2/token",
            f"{CLIENT}.id": given.client_id,
        }
        return plain, {f"{CLIENT}.secret": given.secret}
    if isinstance(given, ManagedIdentity):
        plain = {
            AUTH: "OAuth",
            PROVIDER: f"{_PROVIDERS}MsiTokenProvider",
            MSI_TENANT: "",  # both are asked for, and may be empty
            f"{CLIENT}.id": given.client_id,
        }
        return plain, {}
    raise Refused(
        f"abfss://{authority}: {type(given).__name__} is nothing that Hadoop's connector for Azure knows "
        f"(of {account_of(authority)}): give the account's key, a client's secret, or a managed identity"
    )


AZURE_CONNECTOR = Connector(needs=AZURE_NEEDS, settings=azure_settings, said=said_by_abfs)
