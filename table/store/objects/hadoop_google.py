"""How Google's connector for Hadoop reaches what this library reaches: the same settings in its words.

Of all buckets (`fs.gs.*`): it knows no settings of one. Source of the names: gcs-connector hadoop3-2.2.26.
"""

from __future__ import annotations

from collections.abc import Mapping

from table.errors import Refused
from table.port import SparkNeeds
from table.store.connectors import Connector, HadoopSettings, Tuning
from table.store.objects.settings import Anonymous, KeyFile, ObjectSettings, ProviderChain
from table.store.settings import StoreSettings

CONNECTOR = "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26:shaded"
"""With its own copies of what Spark has in other versions: no other will do, and Spark resolves no such
classifier by itself.
"""
OWN = "fs.gs."
_ENABLED = "auth.service.account.enable"

TUNING: Mapping[str, str] = {
    "http.max.retry": "5",
    "implicit.dir.repair.enable": "false",
    "block.size": "1048576",
}
"""Where nobody has said otherwise: as of S3. `implicit.dir.repair`: a folder is what a file is below."""


def google_settings(settings: StoreSettings, bucket: str) -> HadoopSettings:
    """Raises `Refused` for credentials that are not Google's."""
    assert isinstance(settings, ObjectSettings)
    given = settings.credentials
    plain = {
        "http.connect-timeout": str(round(1_000 * settings.connect_timeout_s)),
        "http.read-timeout": str(round(1_000 * settings.request_timeout_s)),
    }
    if settings.endpoint:
        plain["storage.root.url"] = settings.endpoint.rstrip("/") + "/"
    if isinstance(given, KeyFile):
        plain |= {_ENABLED: "true", "auth.service.account.json.keyfile": given.path}
    elif isinstance(given, Anonymous):
        plain |= {_ENABLED: "false", "auth.null.enable": "true"}
    elif not isinstance(given, ProviderChain):
        raise Refused(
            f"gs://{bucket}: {type(given).__name__} is no credential of Google's: give a key file, or none"
        )
    return HadoopSettings(
        plain={OWN + name: value for name, value in plain.items()},
        tuning=tuple(
            Tuning(asked=OWN + name, name=OWN + name, value=value) for name, value in TUNING.items()
        ),
    )


GOOGLE_CONNECTOR = Connector(needs=SparkNeeds(classified=(CONNECTOR,)), settings=google_settings)
