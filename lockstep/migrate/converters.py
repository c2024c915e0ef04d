"""Kafka Connect's converters as `record.format`, `record.key_format` and `[registry]`. Pure.

Source of the names: Confluent's AbstractKafkaSchemaSerDeConfig and SchemaRegistryClientConfig, Kafka's
JsonConverterConfig.
"""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.migrate.sheet import Sheet

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CONVERTERS: Mapping[str, str] = {
    "io.confluent.connect.avro.AvroConverter": "avro",
    "io.confluent.connect.protobuf.ProtobufConverter": "protobuf",
    "io.confluent.connect.json.JsonSchemaConverter": "json_schema",
    JSON: "json",
    STRING: "string",
    BYTES: "bytes",
    "io.confluent.connect.replicator.util.ByteArrayConverter": "bytes",
}
"""Class -> a name in `participant.records.kinds.FORMATS`."""
GLUE = "com.amazonaws.services.schemaregistry."
"""Package of AWS Glue's converters, whose values begin with another frame than Confluent's."""
FROM_A_REGISTRY = ("avro", "protobuf", "json_schema")
TEXT_COLUMN = {"string": "value STRING", "bytes": "value BINARY"}

_WRITING = "of writing to a registry, which Lockstep never does"
_IDS = "the id before each value names its schema, whatever its subject"
_AS_SENT = "values are read as they were sent"
SUBPROPERTIES: Mapping[str, str] = {
    "auto.register.schemas": _WRITING,
    "use.latest.version": _WRITING,
    "use.latest.with.metadata": _WRITING,
    "use.schema.id": _WRITING,
    "latest.compatibility.strict": _WRITING,
    "normalize.schemas": _WRITING,
    "id.compatibility.strict": _WRITING,
    "value.subject.name.strategy": _IDS,
    "key.subject.name.strategy": _IDS,
    "context.name.strategy": _IDS,
    "schemas.cache.config": "schemas are kept: registry.cache_folder",
    "schemas.cache.size": "schemas are kept: registry.cache_folder",
    "schema.cache.size": "schemas are kept: registry.cache_folder",
    "max.schemas.per.subject": "schemas are kept: registry.cache_folder",
    "latest.cache.size": "schemas are kept: registry.cache_folder",
    "latest.cache.ttl.sec": "schemas are kept: registry.cache_folder",
    "enhanced.avro.schema.support": "enums are texts, and records are told apart by their fields",
    "connect.meta.data": "of schemas of Connect's own, which are not made",
    "allow.optional.map.keys": _AS_SENT,
    "flatten.unions": _AS_SENT,
    "generalized.sum.type.support": _AS_SENT,
    "scrub.invalid.names": "name a column by record.columns where its field's name can be none",
    "ignore.default.for.nullables": "a field that is null is null",
    "replace.null.with.default": "a field that is null is null: no default stands in for it",
    "decimal.format": "DECIMAL takes numbers and digits; BASE64 in change events, by record.decimal_handling",
    "json.fail.invalid.schema": "values are held against the columns, not against their JSON Schema",
    "json.fail.unknown.properties": "fields that are no column are read over, or kept in record.rest",
    "specific.avro.reader": "no Java class is loaded",
    "specific.protobuf.value.type": "no Java class is loaded",
    "converter.type": "no Java class is loaded",
    "converter.encoding": "texts are UTF-8; another encoding is not read",
}
"""Of a converter, what nothing here says, and why."""

_REGISTRY = "schema.registry."


def translate_converter(sheet: Sheet, of: str, *, string_is_json: bool = False) -> None:
    """`of`: `value.converter` or `key.converter`, and all that begins so.

    `string_is_json`: the sink itself reads texts as JSON, as Hudi's does.
    """
    setting = "record.format" if of.startswith("value") else "record.key_format"
    kind = _kind(sheet, of, setting, string_is_json)
    for name in list(sheet.names(f"{of}.")):
        if name not in sheet.said:
            _sub(sheet, name, name.removeprefix(f"{of}."), kind)
    if kind in FROM_A_REGISTRY:
        sheet.must("registry.url", f"the schema registry's address: {of} is {kind}, and says none")


def _kind(sheet: Sheet, of: str, setting: str, string_is_json: bool) -> str:
    given = sheet.get(of)
    if not given:
        if setting == "record.format":
            sheet.must(setting, "what values are: the worker's value.converter says it (--worker FILE)")
        return ""
    kind = CONVERTERS.get(given, "")
    if not kind:
        why = "no converter that is known here"
        if given.startswith(GLUE):
            why = "of AWS Glue's registry, whose values begin with a version and a UUID: they are not read"
        if setting == "record.format":
            sheet.must(setting, f"what values are: {given} is {why}")
        sheet.none(of, why)
        return ""
    if kind == "string" and string_is_json:
        sheet.differs(of, setting, "json", "their sink reads the text as JSON; here the format does")
        return "json"
    if setting == "record.key_format" and kind == "bytes":
        sheet.none(of, "keys are not read, unless a column comes from one (record.columns: key)")
        return kind
    if setting == "record.format" and kind in TEXT_COLUMN:
        sheet.put("record.schema", TEXT_COLUMN[kind])
        sheet.same(of, setting, kind, "a value is the one column, whatever is in it")
    else:
        sheet.same(of, setting, kind)
    return kind


def _sub(sheet: Sheet, name: str, bare: str, kind: str) -> None:
    """One property of a converter."""
    inner = bare.removeprefix(_REGISTRY)
    if bare == "schemas.enable":
        _schemas_enable(sheet, name, kind)
    elif bare == "schema.registry.url":
        sheet.follow(set_registry, name)
    elif inner in ("basic.auth.user.info", "basic.auth.credentials.source"):
        _basic(sheet, name, inner)
    elif inner.startswith("bearer.auth."):
        _bearer(sheet, name, inner)
    elif inner.startswith("ssl."):
        set_registry_ssl(sheet, name, inner)
    elif bare in SUBPROPERTIES:
        sheet.none(name, SUBPROPERTIES[bare])


def _schemas_enable(sheet: Sheet, name: str, kind: str) -> None:
    if kind != "json":
        sheet.none(name, "means something to JsonConverter alone")
    elif sheet.is_true(name):
        sheet.same(name, why="values are {schema, payload}, and their payload is the row: record.envelope")
    else:
        sheet.same(name, why="a value is the row itself")


def json_with_schemas(sheet: Sheet) -> bool:
    """Whether values are `{"schema": …, "payload": …}`: the converter's default."""
    return sheet.get("value.converter") == JSON and sheet.is_true(
        "value.converter.schemas.enable", default=True
    )


def set_registry(sheet: Sheet, name: str) -> None:
    """The registry's address; a user in it becomes one of ours."""
    urls = [one.strip() for one in sheet.get(name).split(",") if one.strip()]
    if any(one.startswith("mock://") for one in urls):
        raise ValueError("a mock's address")
    bare = []
    for url in urls:
        scheme, _, rest = url.partition("://")
        user, at, host = rest.rpartition("@")
        if at:
            sheet.put("registry.user", user.partition(":")[0])
            sheet.put("registry.password", sheet.reference(name, "", "REGISTRY_PASSWORD"))
        bare.append(f"{scheme}://{host}".rstrip("/"))
    before = sheet.settings.get("registry.url")
    if before not in (None, ",".join(bare)):
        sheet.none(name, f"keys and values are of one registry here, {before}")
        return
    sheet.same(name, "registry.url", ",".join(bare))


def _basic(sheet: Sheet, name: str, inner: str) -> None:
    if inner == "basic.auth.credentials.source":
        source = sheet.get(name)
        if source.upper() == "SASL_INHERIT":
            sheet.must("registry.user", "whom the registry knows us as: theirs takes the broker's user")
        sheet.none(name, "registry.user and registry.password say who we are")
        return
    user, _, password = sheet.get(name).partition(":")
    if not password:  # a reference of theirs to both at once
        sheet.must("registry.user", f"the user in {name}")
        sheet.secret(name, "registry.password", "REGISTRY_PASSWORD")
        return
    sheet.put("registry.user", user)
    sheet.put("registry.password", sheet.reference(name, password, "REGISTRY_PASSWORD"))
    sheet.differs(name, "registry.user", user, "the password is a reference: ${env:REGISTRY_PASSWORD}")


def _bearer(sheet: Sheet, name: str, inner: str) -> None:
    match inner:
        case "bearer.auth.token":
            sheet.secret(name, "registry.token", "REGISTRY_TOKEN")
        case "bearer.auth.logical.cluster":
            sheet.same(name, "registry.cluster")
        case "bearer.auth.credentials.source":
            sheet.none(
                name, "registry.token is a token that does not change by itself; others are not fetched"
            )
        case _:
            sheet.none(name, "tokens are not fetched: write one as registry.token")


def set_registry_ssl(sheet: Sheet, name: str, inner: str) -> None:
    """Java's stores are none of ours."""
    if inner == "ssl.truststore.location":
        sheet.must("registry.ca_file", f"the certificates of {sheet.shown(name)}, as PEM")
    if inner == "ssl.keystore.location":
        sheet.must("registry.certificate_file", f"certificate and key of {sheet.shown(name)}, as PEM")
    sheet.none(name, "files of PEM are read: registry.ca_file, registry.certificate_file, registry.key_file")
