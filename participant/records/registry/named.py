"""The registry that a configuration names."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

from participant.records.registry.settings import RegistrySettings
from table.schema import SchemaError

if TYPE_CHECKING:
    from participant.records.registry.client import RegistrySchemas


def registry_schemas(settings: RegistrySettings | None, kind: str) -> RegistrySchemas:
    """Its schemas of a kind, which is a `SchemaKind` as `module:name`: imported as late as the client is.

    Raises `SchemaError` where there is no registry.
    """
    if settings is None:
        raise SchemaError('registry.url is missing; record.framing = "confluent" needs it')
    from participant.records.registry.client import RegistrySchemas

    return RegistrySchemas(settings, resolve_name(kind))
