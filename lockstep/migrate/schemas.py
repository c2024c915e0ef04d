"""Where Hudi's writers take schemas from. Pure.

Source of the names: SchemaRegistryProvider and FilebasedSchemaProvider of hudi-utilities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lockstep.migrate.sheet import Sheet

PREFIXES = ("hoodie.streamer.schemaprovider.", "hoodie.deltastreamer.schemaprovider.")
CLASS = ("hoodie.schemaprovider.class", "--schemaprovider-class")
_SUBJECT = re.compile(r"(?P<url>https?://.+?)/subjects/[^/]+/versions/[^/]+/?")


def translate_provider(sheet: Sheet) -> None:
    """A registry's address, without the subject in it; a file's schema is for somebody to write down."""
    for name in CLASS:
        if name in sheet.given:
            sheet.none(name, "record.format, record.framing and [registry] say where schemas come from")
    for name, bare in _names(sheet):
        if bare == "registry.url":
            _registry(sheet, name)
        elif bare == "source.schema.file":
            _file(sheet, name)
        elif bare.startswith("registry."):
            sheet.none(
                name, "of the subject in their address; here the id before each value names its schema"
            )
        else:
            sheet.none(name, "a table has the columns that record.schema, or a registry, says")
    if sheet.settings.get("record.format") in ("avro", "protobuf", "json_schema"):
        sheet.must("registry.url", "the schema registry's address")


def _names(sheet: Sheet) -> Iterator[tuple[str, str]]:
    for name in list(sheet.given):
        for prefix in PREFIXES:
            if name.startswith(prefix):
                yield name, name.removeprefix(prefix)


def _registry(sheet: Sheet, name: str) -> None:
    match = _SUBJECT.fullmatch(sheet.get(name))
    url = match["url"] if match is not None else sheet.get(name).rstrip("/")
    if sheet.settings.get("record.format") in ("avro", "protobuf", "json_schema"):
        scheme, _, rest = url.partition("://")
        user, at, host = rest.rpartition("@")
        if at:
            sheet.put("registry.user", user.partition(":")[0])
            sheet.put("registry.password", sheet.reference(name, "", "REGISTRY_PASSWORD"))
        sheet.same(name, "registry.url", f"{scheme}://{host}", "the id before each value names its schema")
        return
    sheet.must("record.schema", f"the columns, in Spark DDL, of the schema at {sheet.shown(name)}")
    sheet.none(name, "of JSON without a registry's id the columns are written down: record.schema")


def _file(sheet: Sheet, name: str) -> None:
    sheet.must("record.schema", f"the columns, in Spark DDL, of the schema in {sheet.shown(name)}")
    sheet.none(name, "the columns are written down: record.schema")
