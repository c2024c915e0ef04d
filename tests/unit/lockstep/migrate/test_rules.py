"""What single properties become, and that none is lost, whatever it holds."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.config.load import from_mapping
from lockstep.config.secrets import HIDDEN
from lockstep.migrate.clients import translate_client
from lockstep.migrate.connect import DEBEZIUM, TRANSFORMS, with_worker
from lockstep.migrate.kinds import KINDS, recognised
from lockstep.migrate.partitions import Wanted, java_pattern, spelled
from lockstep.migrate.sheet import Line, Sheet, Verdict
from lockstep.migrate.written import document, to_toml
from tests.unit.lockstep.migrate import names
from tests.unit.lockstep.migrate.theirs import HDFS, HUDI, ICEBERG, S3, STOCKS

OF = {
    "hdfs": (names.CONNECT + names.STORAGE + names.HDFS, HDFS),
    "s3": (names.CONNECT + names.STORAGE + names.S3, S3),
    "hudi-connect": (names.CONNECT + names.HUDI_SINK, HUDI),
    "streamer": (names.STREAMER + names.STREAMER_OPTIONS, STOCKS),
    "iceberg": (names.CONNECT + names.ICEBERG, ICEBERG),
}
IDENTIFIERS = frozenset({"name", "--target-table", "iceberg.tables", "hoodie.table.name"})
"""What becomes an id or a name, of letters and digits, whatever it was."""
VALUES = ["", "1", "true", "-7", "x", "https://host:1/a", "a,b(c)", "${file:/a:b}", "'", "{", "1" * 300]


def translated(kind: str, given: dict[str, str]) -> Sheet:
    sheet = Sheet(given)
    KINDS[kind].translate(sheet)
    return sheet


def line(sheet: Sheet, name: str) -> Line:
    return next(one for one in sheet.lines if one.name == name)


def unknown(sheet: Sheet) -> list[str]:
    return [one.name for one in sheet.lines if one.verdict is Verdict.UNKNOWN]


@pytest.mark.parametrize("kind", OF)
def test_every_documented_property_is_known_by_name(kind: str) -> None:
    known, example = OF[kind]
    for value in ("1", "true"):
        assert unknown(translated(kind, {**dict.fromkeys(known, value), **example})) == []


@pytest.mark.parametrize("kind", ["hdfs", "s3", "hudi-connect", "iceberg"])
def test_every_property_of_a_consumer_is_known_by_name(kind: str) -> None:
    overrides = {f"consumer.override.{name}": "1" for name in names.CONSUMER}
    assert unknown(translated(kind, {**OF[kind][1], **overrides})) == []


def test_an_unknown_property_is_named_as_unknown() -> None:
    sheet = translated("s3", {**S3, "s3.bucket.nmae": "x", "flush.sise": "3"})
    assert unknown(sheet) == ["s3.bucket.nmae", "flush.sise"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(OF)),
    st.dictionaries(
        st.sampled_from(sorted({name for known, _ in OF.values() for name in known}))
        | st.text("abc.-_*", min_size=1, max_size=20),
        st.sampled_from(VALUES) | st.text(max_size=20),
        max_size=30,
    ),
)
def test_whatever_is_given_every_property_has_a_line_and_the_file_is_toml(
    kind: str, found: dict[str, str]
) -> None:
    sheet = translated(kind, found)
    assert set(found) <= {one.name for one in sheet.lines}
    made = document(sheet.settings, ())
    read = tomllib.loads(to_toml(made, sheet.open, ["a"]))
    assert {section: values for section, values in read.items() if values} == made


@pytest.mark.parametrize("kind", OF)
def test_a_secret_is_shown_nowhere_whatever_property_holds_it(kind: str) -> None:
    known, example = OF[kind]
    for name in [
        *set(known) - IDENTIFIERS,
        "consumer.override.sasl.jaas.config",
        "consumer.override.ssl.keystore.password",
    ]:
        for secret in ("https://me:s3cr3t@host", 'x password="s3cr3t";', "me:s3cr3t"):
            if secret.startswith("me:") and "user.info" not in name:
                continue
            sheet = translated(kind, {**example, name: secret})
            told = to_toml(document(sheet.settings, ()), sheet.open, []) + str(sheet.lines) + str(sheet.notes)
            assert "s3cr3t" not in told, name


def test_a_connectors_class_says_what_it_is() -> None:
    assert recognised(S3) == "s3" and recognised(HDFS) == "hdfs" and recognised(HUDI) == "hudi-connect"
    assert recognised(ICEBERG) == "iceberg" and recognised(STOCKS) == "streamer"
    with pytest.raises(Exception, match=r"io\.x\.Sink: that sink is not known here"):
        recognised({"connector.class": "io.x.Sink"})
    with pytest.raises(Exception, match="neither a connector"):
        recognised({"a": "b"})


# --- Connect ------------------------------------------------------------------------------------------


def test_a_workers_file_says_what_its_connectors_leave_out() -> None:
    worker = {
        "bootstrap.servers": "b:9092",
        "consumer.security.protocol": "SSL",
        "consumer.client.rack": "a",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "listeners": "http://:8083",
    }
    merged, left = with_worker({**S3, "consumer.override.client.rack": "b"}, worker)
    sheet = translated("s3", merged)
    assert left == ["listeners"] and unknown(sheet) == []
    assert sheet.settings["source.kafka"] == {"client.rack": "b", "security.protocol": "SSL"}
    assert sheet.settings["source.bootstrap_servers"] == "b:9092"
    assert sheet.settings["record.format"] == "json"


def test_a_connectors_own_converter_is_not_mixed_with_its_workers() -> None:
    worker = {"value.converter": "x.Y", "value.converter.schema.registry.url": "http://worker"}
    merged, left = with_worker({"value.converter": "a.B"}, worker)
    assert merged == {"value.converter": "a.B"} and left == list(worker)


def test_json_with_its_schema_is_said_to_be_within_an_envelope() -> None:
    given = {**S3, "value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    assert translated("s3", given).settings["record.envelope"] == "connect"
    without = translated("s3", {**given, "value.converter.schemas.enable": "false"})
    assert "record.envelope" not in without.settings


@pytest.mark.parametrize("short", sorted(DEBEZIUM))
def test_change_events_become_upserts(short: str) -> None:
    given = {
        **S3,
        "transforms": "un",
        "transforms.un.type": f"a.{short}",
        "transforms.un.drop.tombstones": "x",
    }
    sheet = translated("s3", given)
    assert sheet.settings["record.envelope"] == "debezium" and sheet.settings["table.kind"] == "upsert"


def test_every_transformation_says_how_its_effect_is_had() -> None:
    for short, why in TRANSFORMS.items():
        given = {
            **S3,
            "transforms": "a",
            "transforms.a.type": f"org.apache.kafka.connect.transforms.{short}$Value",
        }
        assert line(translated("s3", given), "transforms.a.type").why == why
    sheet = translated("s3", {**S3, "transforms": "a", "transforms.a.type": "com.example.Mine"})
    assert "not known here" in line(sheet, "transforms.a.type").why


@pytest.mark.parametrize(
    ("tolerance", "topic", "on_error"),
    [("none", "", "fail"), ("all", "", "dead_letter"), ("all", "q", "dead_letter")],
)
def test_what_becomes_of_bad_records_is_taken_over(tolerance: str, topic: str, on_error: str) -> None:
    given = {**S3, "errors.tolerance": tolerance, "errors.deadletterqueue.topic.name": topic}
    sheet = translated("s3", given)
    assert sheet.settings["record.on_error"] == on_error
    assert sheet.settings.get("record.dead_letter_topic", "") == topic


# --- clients ------------------------------------------------------------------------------------------


def client(properties: dict[str, str]) -> Sheet:
    sheet = Sheet(properties)
    assert all(translate_client(sheet, name, name) for name in properties)
    return sheet


def test_a_jaas_line_becomes_a_user_and_a_reference() -> None:
    sheet = client(
        {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="me" password="it\'s";'
            ),
        }
    )
    assert sheet.settings["source.kafka"] == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "${env:KAFKA_SASL_PASSWORD}",
    }
    assert line(sheet, "sasl.jaas.config").value == HIDDEN and "environment KAFKA_SASL_PASSWORD" in sheet.open


def test_names_of_javas_client_become_librdkafkas_and_stores_of_java_are_said_to_be_none() -> None:
    sheet = client(
        {
            "fetch.max.wait.ms": "100",
            "ssl.endpoint.identification.algorithm": "",
            "ssl.truststore.location": "/etc/trust.jks",
            "ssl.keystore.location": "/etc/key.p12",
            "ssl.keystore.type": "PKCS12",
            "isolation.level": "read_uncommitted",
        }
    )
    assert sheet.settings["source.kafka"] == {
        "fetch.wait.max.ms": "100",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.keystore.location": "/etc/key.p12",
    }
    assert "/etc/trust.jks" in sheet.open["source.kafka.ssl.ca.location"]
    assert line(sheet, "isolation.level").verdict is Verdict.NO_EQUAL


# --- table partitions, transactions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joda", "java"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd", "'year'=yyyy/'month'=MM/'day'=dd"),
        ("xxxx-'W'ww", "YYYY-'W'ww"),
        ("'Y''x'YY", "'Y''x'yy"),
        ("YYYY-MM-dd-HH", "yyyy-MM-dd-HH"),
    ],
)
def test_a_pattern_of_joda_time_is_spelled_as_javas(joda: str, java: str) -> None:
    assert java_pattern(joda) == java


def test_a_pattern_that_java_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="century or a zone"):
        java_pattern("CC/YY")


def partitioned(**properties: str) -> Sheet:
    kind = f"io.confluent.connect.storage.partitioner.{properties.pop('kind')}"
    return translated(
        "s3", {**S3, "partitioner.class": kind, **{k.replace("_", "."): v for k, v in properties.items()}}
    )


ZONE = "Europe/Berlin"
HOURLY = [
    f'format(_kafka_timestamp, "{pattern}", "{ZONE}") as {name}'
    for pattern, name in (("yyyy", "year"), ("MM", "month"), ("dd", "day"), ("HH", "hour"))
]
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


@pytest.mark.parametrize(
    ("properties", "partition_by", "hive_style"),
    [
        ({"kind": "HourlyPartitioner", "timestamp_extractor": "Record", "timezone": ZONE}, HOURLY, True),
        (
            {"kind": "DailyPartitioner"},
            [
                f'format(now(), "{one}", "UTC") as {name}'
                for one, name in (("yyyy", "year"), ("MM", "month"), ("dd", "day"))
            ],
            True,
        ),
        (
            {
                "kind": "TimeBasedPartitioner",
                "timestamp_extractor": "RecordField",
                "timestamp_field": "at",
                "path_format": "YYYY/MM-dd",
            },
            ['format(at, "yyyy", "UTC") as at_year', 'format(at, "MM-dd", "UTC") as at_day'],
            False,
        ),
        (
            {
                "kind": "TimeBasedPartitioner",
                "timestamp_extractor": "Record",
                "path_format": "YYYY/MM/dd/HHmm",
                "partition_duration_ms": "900000",
            },
            ['minutes(15, _kafka_timestamp, "UTC")'],
            False,
        ),
        ({"kind": "FieldPartitioner", "partition_field_name": "a,b"}, ["a", "b"], True),
        ({"kind": "DefaultPartitioner"}, None, False),
    ],
)
def test_partitioners_of_confluents_are_said_as_fields_and_functions(
    properties: dict[str, str], partition_by: list[str] | None, hive_style: bool
) -> None:
    sheet = partitioned(**properties)
    assert sheet.settings.get("table.partition_by") == partition_by
    assert sheet.settings.get("table.hudi") == (HIVE_STYLE if hive_style else None)
    assert unknown(sheet) == []


@pytest.mark.parametrize(
    "properties",
    [
        {"path_format": "'week'=ww"},
        {"path_format": "MMM"},
        {"path_format": ""},
        {"path_format": "YYYY/MM/dd/HH", "partition_duration_ms": "86400000"},
        {"path_format": "YYYY", "timestamp_extractor": "com.example.Mine"},
    ],
)
def test_a_path_that_cannot_be_said_is_told_and_not_guessed(properties: dict[str, str]) -> None:
    sheet = partitioned(kind="TimeBasedPartitioner", **properties)
    assert "table.partition_by" not in sheet.settings
    assert line(sheet, "partitioner.class").verdict in (Verdict.NO_EQUAL, Verdict.DIFFERS)


def test_more_than_fields_and_functions_cannot_be_said() -> None:
    assert spelled(Wanted(parts=("a", "day(b)"))) == ["a", "day(b)"] and spelled(Wanted()) == []
    assert spelled(Wanted(parts=("a.b",))) is None and spelled(Wanted(parts=("week(a)",))) is None
    assert spelled(Wanted(parts=tuple("abcdefghi"))) is None


def test_the_wall_clock_is_said_to_cost_them_exactly_once() -> None:
    assert any("exactly once does not hold" in note for note in partitioned(kind="DailyPartitioner").notes)


@pytest.mark.parametrize(
    ("schedule", "interval", "expected"),
    [
        ("60000", "5000", {"schedule": "every 1m", "interval": "5s"}),
        ("3600000", "", {"schedule": "every 1h", "zone": "Europe/Berlin"}),
        ("86400000", "", {"schedule": "every 24h"}),
        ("7000", "", {"interval": "7s"}),
        ("-1", "5000", {"interval": "5s"}),
        ("", "172800000", {"interval": "24h"}),
        ("", "1", {"interval": "100ms"}),
    ],
)
def test_a_schedule_of_theirs_is_one_and_their_interval_keeps_within_bounds(
    schedule: str, interval: str, expected: dict[str, str]
) -> None:
    rotation = {"rotate.schedule.interval.ms": schedule, "rotate.interval.ms": interval}
    zone = {"timezone": expected["zone"]} if "zone" in expected else {}
    sheet = translated("s3", {**S3, **rotation, **zone})
    said = {name: sheet.settings.get(f"transaction.{name}") for name in ("schedule", "interval", "zone")}
    assert {name: value for name, value in said.items() if value is not None} == expected
    noted = any("rotate.schedule.interval.ms goes by" in note for note in sheet.notes)
    assert noted == (schedule not in ("", "-1"))


def test_a_file_of_few_records_does_not_become_a_transaction_of_few() -> None:
    assert "transaction.max_records" not in translated("s3", {**S3, "flush.size": "1000"}).settings
    assert translated("s3", {**S3, "flush.size": "50000"}).settings["transaction.max_records"] == 50_000


# --- Hudi's -------------------------------------------------------------------------------------------


def streamed(options: Sequence[tuple[str, str]], **properties: str) -> Sheet:
    return translated(
        "streamer", {**STOCKS, "--target-base-path": "s3://lake/a", **dict(options), **properties}
    )


@pytest.mark.parametrize(
    ("options", "kind", "goes_on"),
    [
        ([("--op", "INSERT"), ("--table-type", "COPY_ON_WRITE")], "insert", True),
        ([("--op", "BULK_INSERT"), ("--table-type", "MERGE_ON_READ")], "insert", False),
        ([("--table-type", "COPY_ON_WRITE")], "upsert", False),
        ([("--table-type", "MERGE_ON_READ")], "upsert", False),
        ([("--table-type", "MERGE_ON_READ"), ("hoodie.index.type", "BUCKET")], "upsert", True),
        ([("--table-type", "MERGE_ON_READ"), ("hoodie.index.type", "BUCKET"),
          ("hoodie.index.bucket.engine", "CONSISTENT_HASHING")], "upsert", False),
    ],
)  # fmt: skip
def test_their_table_goes_on_only_where_it_may(
    options: list[tuple[str, str]], kind: str, goes_on: bool
) -> None:
    sheet = streamed(options)
    assert sheet.settings["table.kind"] == kind
    assert sheet.settings["table.path"] == ("s3a://lake/a" if goes_on else "s3a://lake/a-lockstep")


def test_what_hudis_write_client_obeys_is_handed_on_and_the_rest_is_not() -> None:
    sheet = streamed([], **{"hoodie.keep.min.commits": "30", "hoodie.simple.index.x": "1"})
    assert sheet.settings["table.hudi"] == {"hoodie.keep.min.commits": "30"}
    assert line(sheet, "hoodie.simple.index.x").verdict is Verdict.NO_EQUAL


def test_a_time_based_key_generator_is_told_as_an_expression() -> None:
    sheet = streamed(
        [],
        **{
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
            "hoodie.keygen.timebased.timezone": "GMT",
        },
    )
    assert sheet.settings["table.partition_by"] == [
        f'format(date, "{pattern}", "GMT") as date_{name}'
        for pattern, name in (("yyyy", "year"), ("MM", "month"), ("dd", "day"))
    ]
    assert sheet.settings["table.path"] == "s3a://lake/a-lockstep"
    assert unknown(sheet) == []


def test_a_table_that_goes_on_keeps_its_time_based_key_generator() -> None:
    options = [("--op", "INSERT"), ("--table-type", "COPY_ON_WRITE")]
    said = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.deltastreamer.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    sheet = streamed(options, **said)
    assert sheet.settings["table.path"] == "s3a://lake/a"
    assert sheet.settings["table.partition_by"] == ["ts"]
    assert sheet.settings["table.hudi"] == {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    assert unknown(sheet) == []
    custom = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,ts:TIMESTAMP",
    }
    other = streamed(options, **{**said, **custom})
    assert other.settings["table.path"] == "s3a://lake/a-lockstep"
    assert other.settings["table.partition_by"][0] == "region"  # type: ignore[index]


def test_icebergs_transforms_are_told_as_expressions() -> None:
    sheet = translated(
        "iceberg", {**ICEBERG, "iceberg.tables.default-partition-by": "hours(ts), bucket(id, 16)"}
    )
    assert sheet.settings["table.partition_by"] == ["hour(ts)", "bucket(16, id)"]


def test_what_is_made_says_what_a_run_would_have_by_default_no_second_time() -> None:
    sheet = translated("s3", {**S3, "bootstrap.servers": "b:1", "value.converter": "a.AvroConverter"})
    made = document(sheet.settings, ["record.schema=a STRING"])
    assert from_mapping(made).transaction.interval_ms == 10_000


def test_a_text_is_one_column() -> None:
    sheet = translated("s3", {**S3, "value.converter": "org.apache.kafka.connect.storage.StringConverter"})
    assert (sheet.settings["record.format"], sheet.settings["record.schema"]) == ("string", "value STRING")


def test_what_the_command_line_says_of_the_table_goes_before_the_file() -> None:
    sheet = streamed([("--target-table", "mine")], **{"hoodie.base.path": "/a", "hoodie.table.name": "b"})
    assert sheet.settings["table.path"].startswith("s3a://lake/a") and sheet.settings["table.name"] == "mine"  # type: ignore[attr-defined]
