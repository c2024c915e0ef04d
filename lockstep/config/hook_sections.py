"""The section of what others are told after a commit."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from lockstep.config import values
from lockstep.config.sections import Section
from table.errors import Refused
from table.store.location import Location

COMPLETE_FOLDER = "hooks.complete_folder"


def _marker_folder(value: str) -> str:
    if not value.strip():
        return ""
    if "://" not in value:
        raise ValueError(f'{value!r} has no scheme: write the whole URI, "file:///data/complete/events"')
    try:
        return str(Location.parse(value, setting=COMPLETE_FOLDER))
    except Refused as error:
        raise ValueError(str(error).removeprefix(f"{COMPLETE_FOLDER} {value}: ")) from None


MarkerFolder = Annotated[str, AfterValidator(_marker_folder)]


class HooksSection(Section):
    """Who is told of each commit, once it is durable: [hooks.md](hooks.md). Nothing here can hold one up."""

    topic: values.TopicOrEmpty = Field(
        default="",
        description=(
            "A Kafka topic, on the source's cluster, that gets a message of JSON for each commit. Made where "
            "it is missing. Empty: none."
        ),
        examples=["events-commits"],
    )
    webhook: values.HookAddress = Field(
        default="",
        repr=False,
        description=(
            "An `http://` or `https://` address that gets the same JSON by POST, or a reference to a secret "
            "that holds one. Its host is shown, the rest never. Empty: none."
        ),
        examples=["https://jobs.example.org/commits"],
    )
    webhook_headers: values.Properties = Field(
        default_factory=dict,
        repr=False,
        description=(
            "Headers that go with it. What says who we are (`Authorization`, `Cookie`, an API key, a token) "
            'holds a reference to a secret: `"Bearer ${env:NAME}"`.'
        ),
    )
    webhook_timeout_ms: values.HookTimeoutMs = Field(
        default="10s",
        validate_default=True,
        alias="webhook_timeout",
        description="How long it may take to answer; then it is tried again. From 1s to 5m.",
    )
    complete_every_ms: values.SpanMs = Field(
        default="0s",
        validate_default=True,
        alias="complete_every",
        description=(
            "Stretches of event time that are told of once they are complete by the table's watermark, "
            "aligned in UTC: `24h` are days. Whole minutes, to 8760h. `0s`: none. Needs `record.event_time`; "
            "[hooks.md](hooks.md#what-is-complete)."
        ),
        examples=["24h"],
    )
    complete_folder: MarkerFolder = Field(
        default="",
        description=(
            "Where a file `<begin>/_SUCCESS` is written for each: a folder on the table's store, and not in "
            "the table's own, `file:///…` or `s3a://bucket/…`. Empty: none is."
        ),
        examples=["file:///data/complete/events"],
    )
    openlineage: values.LineageAddress = Field(
        default="",
        repr=False,
        description=(
            "Where OpenLineage events go: the `http://` or `https://` address of a server, whose "
            "`/api/v1/lineage` is taken unless a path is given, or `file:///…` to append them to. Needs "
            "`pip install lockstep[openlineage]`. Empty: none."
        ),
        examples=["https://lineage.example.org"],
    )
    openlineage_namespace: str = Field(
        default="lockstep", description="The namespace of the job, whose name is `pipeline.id`."
    )
    openlineage_api_key: values.SecretReference = Field(
        default="",
        repr=False,
        description='What the server knows us by, as a reference to a secret, `"${env:NAME}"`.',
        examples=["${env:LINEAGE_KEY}"],
    )
    hive: values.MetastoreUris = Field(
        default="",
        description=(
            "The `thrift://` addresses of a Hive metastore, several separated by commas, in which the table "
            "is kept up to date by Hudi's own tool: made, new columns, new table partitions. Empty: none."
        ),
        examples=["thrift://metastore.example.org:9083"],
    )
    hive_database: values.HiveName = Field(
        default="default", description="The database there. Made where it is missing."
    )
    hive_table: values.HiveNameOrEmpty = Field(
        default="", description="The table's name there. Empty: `table.name`."
    )
    hive_period_ms: values.TimeoutMs = Field(
        default="1m",
        validate_default=True,
        alias="hive_period",
        description="Not more often than that, however many commits there are. From 1s to 24h.",
    )
