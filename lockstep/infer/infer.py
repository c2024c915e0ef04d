"""From a sample of topics to the schema that it would go into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lockstep.config import Config
from lockstep.errors import ConfigError, Failed
from lockstep.infer.columns import proposed
from lockstep.infer.report import Inferred, Told
from lockstep.infer.sample import Limits, NoRecords, sample
from lockstep.infer.shapes import Shape
from lockstep.infer.trial import Verdict, tried
from lockstep.letters.reading import Broker
from participant.records.json.values import Mismatch, Object, parse
from participant.records.raw import RawBatch
from participant.records.sources import CONNECT, CONNECT_PAYLOAD
from table.widening import ddl_of

JSON, FRAMED = "json", "json_schema"


def told(config: Config) -> Told | None:
    """The columns that a registry says values have; None where their schemas are in none.

    Raises as `lockstep.columns.of_the_registry`.
    """
    record = config.record
    if not record.names_schemas:
        return None
    from lockstep.columns import of_the_registry

    columns, said_by = of_the_registry(config)
    return Told(said_by=said_by, ddl=",\n".join(ddl_of([one]) for one in columns))


def told_or_not(config: Config) -> tuple[Told | None, str]:
    """The same; of values that say themselves what they are also why a registry says nothing of them."""
    try:
        return told(config), ""
    except (ConfigError, Failed) as why:
        if config.record.format != FRAMED:
            raise
        return None, f"the schema registry says no columns, so records were looked at: {why}"


def infer(config: Config, kafka: Mapping[str, str], topics: Sequence[str], limits: Limits) -> Inferred:
    """`kafka`: with secrets resolved. Raises as `sample` does, and `ConfigError` for what is not inferred."""
    record = config.record
    framed = record.format == FRAMED
    if not (framed or record.format == JSON) or record.envelope not in ("none", CONNECT):
        what = f"{record.envelope} events" if record.envelope not in ("none", CONNECT) else record.format
        raise ConfigError(
            f"of {what} no schema is inferred: it is of records that are objects in JSON, each of them a "
            "row, and of Avro, Protobuf and JSON Schema a registry says it"
        )
    broker = Broker(kafka=kafka, group=config.group_id, reader=config.source.reader)
    try:
        found = sample(broker, topics, limits, whole=framed)
    except NoRecords as why:
        raise Failed(f"{why}: produce some, or name another --topic.") from why
    shape, payloads, without_value, no_objects = Shape(), Shape(), 0, Counter[str]()
    batches, nameless = _bare(found.batches) if framed else (found.batches, [])
    no_objects.update(nameless)
    for batch in batches:
        for value in batch.values:
            if value is None:
                without_value += 1
                continue
            try:
                document = parse(value)
                shape.add(document)
                if (payload := payload_of(document)) is not None:
                    payloads.add(payload)
            except Mismatch as mismatch:
                no_objects[str(mismatch).partition(" at ")[0]] += 1
            except RecursionError:
                no_objects["nested too deeply"] += 1
    enveloped = record.envelope == CONNECT or 2 * payloads.seen > shape.seen
    shape = payloads if enveloped else shape
    proposal = proposed(shape)
    given = [batch.without_tombstones for batch in batches]
    envelope = CONNECT if enveloped else "none"
    verdict = (
        tried(config, proposal, given, envelope) if proposal.columns else Verdict(refused="there are none")
    )
    return Inferred(
        topics=tuple(topics),
        sample=found,
        shape=shape,
        without_value=without_value,
        no_objects=dict(no_objects.most_common(20)),
        proposal=proposal,
        verdict=verdict,
        envelope=envelope,
    )


def payload_of(document: Object) -> Object | None:
    """Return the row in Kafka Connect's envelope, None where a value is in none."""
    fields = dict(document)
    schema, payload = fields.get("schema"), fields.get(CONNECT_PAYLOAD)
    if fields.keys() != {"schema", CONNECT_PAYLOAD} or not isinstance(schema, Object):
        return None
    return payload if isinstance(payload, Object) and "type" in dict(schema) else None


def _bare(batches: Sequence[RawBatch]) -> tuple[list[RawBatch], list[str]]:
    """What stands behind the ids of schemas, and why some have none."""
    from participant.records.json_schema.frames import bare

    found = [bare(batch) for batch in batches]
    return [batch for batch, _ in found], [why for _, reasons in found for why in reasons]
