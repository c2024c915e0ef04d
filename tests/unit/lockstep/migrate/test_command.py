"""`lockstep migrate` from the command line: what it reads, where it writes, how it ends."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import javaproperties
import pytest

from lockstep.cli import run
from lockstep.config import load
from lockstep.errors import EXIT_USAGE, EXIT_WELL, ConfigError
from lockstep.migrate.given import FILE_BYTES_MAX, read_given, read_options
from tests.unit.lockstep.migrate.theirs import EXAMPLES, S3, STOCKS, WORKER


def saved(folder: Path, name: str, properties: dict[str, str]) -> str:
    path = folder / name
    path.write_text(javaproperties.dumps(properties))
    return str(path)


def test_a_file_is_written_that_only_its_user_may_read_and_never_over_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = saved(tmp_path, "s3.properties", S3), tmp_path / "pipeline.toml"
    arguments = ["migrate", "--from", source, "--out", str(out)]
    assert run([*arguments, "--worker", saved(tmp_path, "w.properties", WORKER)]) == EXIT_WELL
    told = capsys.readouterr().out
    assert told.startswith("Confluent's S3 sink: ") and f"{out} is written." in told
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert load(out, environment={}).source.topics == ("s3_topic",)
    assert run(arguments) == EXIT_USAGE
    assert "is there: name another with --out, or replace it with --force" in capsys.readouterr().err
    assert run([*arguments, "--force"]) == EXIT_WELL


def test_what_nobody_has_said_is_told_and_stands_in_the_file_as_a_comment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pipeline.toml"
    source = saved(tmp_path, "s3.properties", S3)
    assert run(["migrate", "--from", source, "--out", str(out), "--output", "json"]) == EXIT_WELL
    told = json.loads(capsys.readouterr().out)
    assert set(told["missing"]) == {"record.format", "record.schema", "source.bootstrap_servers"}
    assert "# bootstrap_servers = …   # the brokers" in out.read_text()
    said = [
        f"--set={one}"
        for one in ("record.schema=a INT", "record.format=json", "source.bootstrap_servers=b:1")
    ]
    assert run(["migrate", "--from", source, "--output", "json", *said]) == EXIT_WELL
    told = json.loads(capsys.readouterr().out)
    assert told["missing"] == {} and told["problems"] == []


def test_a_command_line_of_hoodie_streamers_follows_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = EXAMPLES["streamer, the docker demo"].options
    source = saved(tmp_path, "kafka-source.properties", STOCKS)
    assert run(["migrate", "--from", source, "--output", "json", "--", *options]) == EXIT_WELL
    told = json.loads(capsys.readouterr().out)
    assert told["what"] == "HoodieStreamer" and list(told["missing"]) == ["record.schema"]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--op", "INSERT", "--continuous"], {"--op": "INSERT", "--continuous": "true"}),
        (["--op=INSERT"], {"--op": "INSERT"}),
        (["--hoodie-conf", "a.b=c=d", "--hoodie-conf=e=f"], {"a.b": "c=d", "e": "f"}),
        (
            ["spark-submit", "--jars", "a.jar", "--class", "x.Streamer", "b.jar", "--op", "UPSERT"],
            {"--op": "UPSERT"},
        ),
        (
            ["spark-submit --class x.Streamer b.jar --table-type COPY_ON_WRITE"],
            {"--table-type": "COPY_ON_WRITE"},
        ),
        (
            ["spark-submit", "--class", "x.Streamer", "--jars", "a.jar", "b.jar", "--op", "INSERT"],
            {"--op": "INSERT"},
        ),
        (
            ["/opt/spark/bin/spark-submit", "--verbose", "--conf", "a=b", "b.jar", "--op=UPSERT"],
            {"--op": "UPSERT"},
        ),
        ([], {}),
    ],
)
def test_options_are_read_as_hoodie_streamer_reads_them(words: list[str], options: dict[str, str]) -> None:
    assert read_options(words) == options


def test_a_word_that_is_no_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="INSERT is no option of HoodieStreamer"):
        read_options(["INSERT", "--op"])
    with pytest.raises(ConfigError, match="--hoodie-conf a has no '='"):
        read_options(["--hoodie-conf", "a"])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"{", "holds neither properties, nor a connector in JSON"),
        (b"[1]", "it is no object of properties"),
        (b'{"a": {"b": 1}}', "a holds no text and no number"),
        (b"[" * 100_000, "nested too deeply"),
        (b"# nothing\n", "holds no property"),
        (b"a=\\u12", "holds neither properties"),
        (b"a" * (FILE_BYTES_MAX + 1), "is larger than"),
        ("\n".join(f"a{number}=1" for number in range(5_001)).encode(), "at most 5,000 are read"),
    ],
)
def test_a_file_that_is_none_of_theirs_is_refused_with_a_sentence(
    content: bytes, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        read_given(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_given(tmp_path / "nothing")


def test_numbers_and_switches_in_json_are_read_as_connect_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"name": "a", "config": {"tasks.max": 4, "b": true, "c": null, "d": 1.5}, "tasks": []}')
    assert read_given(path) == {"tasks.max": "4", "b": "true", "c": "", "d": "1.5", "name": "a"}


def test_an_unknown_sink_is_an_error_of_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = saved(tmp_path, "x.properties", {"connector.class": "io.example.Sink"})
    assert run(["migrate", "--from", source]) == EXIT_USAGE
    assert "io.example.Sink: that sink is not known here" in capsys.readouterr().err


STRIMZI = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: orders
  labels:
    strimzi.io/cluster: c
spec:
  class: io.confluent.connect.s3.S3SinkConnector
  tasksMax: 2
  config:
    topics: t1
    s3.bucket.name: "bucket"
    flush.size: 3
    store.kafka.keys: false
    errors.tolerance: null
"""
WORKERS = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata: {name: c}
spec:
  bootstrapServers: b:9092
  config:
    value.converter: org.apache.kafka.connect.json.JsonConverter
    value.converter.schemas.enable: false
"""


def test_a_connector_of_strimzis_is_read_with_its_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connector, worker = tmp_path / "connector.yaml", tmp_path / "connect"
    connector.write_text(STRIMZI)
    worker.write_text(WORKERS)
    assert read_given(connector) == {
        "name": "orders",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "tasks.max": "2",
        "topics": "t1",
        "s3.bucket.name": "bucket",
        "flush.size": "3",
        "store.kafka.keys": "false",
        "errors.tolerance": "null",
    }
    command = ["migrate", "--from", str(connector), "--worker", str(worker), "--output", "json"]
    assert run([*command, "--set", "record.schema=id STRING"]) == EXIT_WELL
    told = json.loads(capsys.readouterr().out)
    assert told["missing"] == {} and told["problems"] == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (STRIMZI + "---" + STRIMZI, "it holds 2 resources of kind KafkaConnector or KafkaConnect"),
        (STRIMZI.replace("KafkaConnector", "KafkaTopic"), "it holds 0 resources"),
        (STRIMZI.partition("spec:")[0], "its spec, or spec.config, is no mapping"),
        (STRIMZI.replace("topics: t1", "topics: [t1]"), "topics holds no text and no number"),
        (STRIMZI.replace("topics: t1", "topics: {"), "nor one of Strimzi's in YAML"),
        ("apiVersion: " + "[" * 100_000, "nested too deeply"),
    ],
    ids=["two", "another kind", "no spec", "a list", "no YAML", "nested"],
)
def test_yaml_that_is_no_connector_is_refused_with_a_sentence(
    content: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "connector.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=sentence):
        read_given(path)


SITE = """<configuration><property><name>fs.defaultFS</name><value>hdfs://nn:8020/</value></property>
</configuration>"""


@pytest.mark.parametrize(
    ("given", "site", "expected"),
    [
        ("/user/me/x", "", ""),
        ("/user/me/x", SITE, "hdfs://nn:8020/user/me/x"),
        ("hdfs:///dwh/raw/x", "", ""),
        ("hdfs:///dwh/raw/x", SITE, "hdfs://nn:8020/dwh/raw/x"),
        ("/data/x", SITE.replace("hdfs://nn:8020/", "file:///"), "file:///data/x"),
        ("hdfs:///data/x", SITE.replace("hdfs://nn:8020/", "file:///"), ""),
        ("/data/x", "<configuration>", ""),
        ("s3://b/x", SITE, "s3a://b/x"),
    ],
)
def test_a_path_without_a_file_system_is_where_hadoop_says(
    given: str,
    site: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a cluster that is HDFS: `file://` would be a folder of each machine."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "core-site.xml").write_text(site)
    source = tmp_path / "streamer.properties"
    source.write_text("hoodie.streamer.source.kafka.topic=events\nbootstrap.servers=b:9092\n")
    options = ["--table-type", "COPY_ON_WRITE", "--op", "INSERT", "--target-table", "x"]
    command = ["migrate", "--from", str(source), "--output", "json", "--", *options]
    assert run([*command, "--target-base-path", given]) == EXIT_WELL
    told = json.loads(capsys.readouterr().out)
    (line,) = [one for one in told["properties"] if one["name"] == "--target-base-path"]
    assert line["ours"] == expected
    if not expected:
        assert (
            "fs.defaultFS in Hadoop's core-site.xml says it, such as hdfs://NAMENODE:8020/"
            in (told["missing"]["table.path"])
        )
