"""Secrets are planted in everything that is read; no command shows or passes on one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockstep import cli

MARKER = re.compile(r"PLANTED[0-9]+")
PEM = "-----BEGIN PRIVATE KEY-----\nPLANTED{0}MIGHAgEAMBMGByq\n-----END PRIVATE KEY-----"
ICEBERG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "topics": "t1",
    "iceberg.tables": "db.t",
    "consumer.override.security.protocol": "SSL",
    "consumer.override.ssl.keystore.type": "PEM",
    "consumer.override.ssl.keystore.key": PEM.format(1),
    "iceberg.kafka.ssl.keystore.key": PEM.format(2),
    "iceberg.catalog.adls.sas-token.acct.dfs.core.windows.net": "sv=2022-11-02&sig=PLANTED3",
    "iceberg.catalog.adls.connection-string.acct": "DefaultEndpointsProtocol=https;AccountKey=PLANTED4==",
    "iceberg.hadoop.fs.azure.sas.cont.acct.blob.core.windows.net": "?sv=1&sig=PLANTED5",
    "iceberg.hadoop.fs.azure.account.key.acct.dfs.core.windows.net": "PLANTED6",
    "iceberg.catalog.s3.secret-access-key": "PLANTED7",
    "iceberg.catalog.s3.access-key-id": "AKIAPLANTED8",
    "iceberg.catalog.gcs.oauth2.token": "PLANTED9",
    "iceberg.catalog.credential": "id:PLANTED10",
    "iceberg.catalog.header.Authorization": "Bearer PLANTED11",
    "iceberg.catalog.jdbc.password": "PLANTED12",
    "iceberg.catalog.uri": "https://user:PLANTED13@catalog.example.org?token=PLANTED14",
    "iceberg.catalog.s3.sse.key": "PLANTED15",
    "iceberg.kafka.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="PLANTED16";',
    "transforms": "f",
    "transforms.f.type": "org.example.Encrypt",
    "transforms.f.passphrase": "PLANTED17",
    "transforms.f.sas": "sig=PLANTED18",
    "transforms.f.hmac.key": "PLANTED19",
}
S3 = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "t1",
    "s3.bucket.name": "b",
    "flush.size": "3",
    "aws.access.key.id": "AKIAPLANTED20",
    "aws.secret.access.key": "PLANTED21",
    "s3.sse.customer.key": "PLANTED22",
    "s3.proxy.url": "https://u:PLANTED23@proxy:8080",
    "s3.proxy.password": "PLANTED24",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "https://u:PLANTED25@r",
    "value.converter.schema.registry.ssl.keystore.key": PEM.format(26),
    "value.converter.schema.registry.basic.auth.user.info": "u:PLANTED27",
    "value.converter.bearer.auth.token": "PLANTED28",
    "value.converter.bearer.auth.client.secret": "PLANTED29",
    "consumer.override.ssl.keystore.type": "PEM",
    "consumer.override.ssl.keystore.key": PEM.format(30),
    "consumer.override.sasl.oauthbearer.jwt.assertion": "PLANTED31",
    "some.transform.note": f"of a {PEM.format(32)}",
    "some.webhook": "https://hooks.example.org/?a=b&api_key=PLANTED33",
}
HDFS = {
    "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
    "topics": "t1",
    "flush.size": "3",
    "store.url": "hdfs://nn:8020",
    "confluent.license": "PLANTED34",
    "hive.metastore.password": "PLANTED35",
    "consumer.override.sasl.oauthbearer.config": "principal=x secret=PLANTED36",
}
WORKER = {
    "bootstrap.servers": "b:9092",
    "consumer.security.protocol": "SSL",
    "consumer.ssl.keystore.type": "PEM",
    "consumer.ssl.keystore.key": PEM.format(40).replace("\n", "\\n"),
    "consumer.ssl.key.password": "PLANTED41",
    "consumer.ssl.truststore.password": "PLANTED42",
    "consumer.sasl.jaas.config": "x.ScramLoginModule required username=u password=PLANTED43;",
    "admin.listeners.https.ssl.keystore.password": "PLANTED44",
}
STREAMER = {
    "hoodie.streamer.source.kafka.topic": "t1",
    "bootstrap.servers": "b:9092",
    "ssl.keystore.key": PEM.format(50).replace("\n", "\\n"),
    "fs.azure.sas.c.a.blob.core.windows.net": "?sig=PLANTED51",
    "hoodie.streamer.schemaprovider.registry.url": "https://u:PLANTED52@r/subjects/t1-value/versions/latest",
    "sasl.jaas.config": 'x required username="u" password="PLANTED53";',
    "hoodie.write.commit.callback.http.api.key": "PLANTED54",
    "hoodie.datasource.hive_sync.password": "PLANTED55",
    "hoodie.write.lock.dynamodb.secret.key": "PLANTED56",
}
PIPELINE = """
[pipeline]
id = "planted"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["t1"]
[source.kafka]
"sasl.password" = "PLANTED60"
"ssl.key.pem" = "PLANTED61"
"sasl.jaas.config" = "x required password=PLANTED62;"
"sasl.oauthbearer.token.endpoint.url" = "https://u:PLANTED63@h/"
[record]
schema = "id STRING"
[table]
path = "file:///nowhere/planted"
name = "planted"
[table.hudi]
"hoodie.write.commit.callback.http.custom.headers" = "Authorization:PLANTED64"
[hooks]
webhook = "https://hooks.example.org/services/PLANTED65"
webhook_headers = { "X-Hub" = "PLANTED66" }
"""
ON_COMMAND_LINES = (
    ("--set", "hooks.webhook=https://hooks.example.org/services/T0/PLANTED70"),
    ("--set", "hooks.openlineage=https://lineage.example.org/?api_key=PLANTED71"),
    ("--conf", "spark.lockstep.hooks.webhook=https://hooks.example.org/services/T0/PLANTED72"),
    ("--set", 'hooks.webhook_headers={"X-Hub-Signature":"PLANTED73"}'),
    ("--set", "hooks.webhook_headers.X-Any=PLANTED74"),
    ("--set", "source.kafka.sasl.oauthbearer.token.endpoint.url=https://u:PLANTED75@h/"),
    ("--conf", "spark.hadoop.fs.azure.sas.fixed.token.c.a.dfs.core.windows.net=PLANTED76"),
    ("--conf", "spark.hadoop.fs.gs.auth.service.account.private.key=PLANTED77"),
    ("--conf", "spark.driver.extraJavaOptions=-Da=b -Dsun.key.passphrase=PLANTED78"),
    ("--conf", "spark.yarn.appMasterEnv.AWS_SECRET_ACCESS_KEY=PLANTED79"),
    ("--conf", "spark.x.url=https://u:PLANTED80@h/"),
    ("--set", "source.kafka.sasl.password=PLANTED81"),
    ("--set", "source.kafka.ssl.keystore.key=PLANTED82"),
    ("--set", "source.kafka.client.id=Bearer PLANTED83"),
)
PASSED_ON = (
    ("--set", "hooks.webhook=http://127.0.0.1:9/"),
    ("--set", "hooks.webhook=${env:HOOK}"),
    ("--set", "hooks.webhook_headers.X-Any=${env:HEADER}"),
    ("--set", "hooks.openlineage=file:///lineage/events.jsonl"),
    ("--conf", "spark.hadoop.fs.s3a.aws.credentials.provider=org.example.Provider"),
    ("--conf", "spark.hadoop.fs.s3a.encryption.key=arn:aws:kms:eu-west-1:1:key/2"),
    ("--conf", "spark.kubernetes.driver.secrets.my-secret=/etc/secrets"),
)


def written(folder: Path, name: str, given: Mapping[str, str]) -> Path:
    path = folder / name
    if name.endswith(".json"):
        path.write_text(json.dumps({"name": "s", "config": given}), encoding="utf-8")
    else:
        path.write_text("\n".join(f"{key}={value}" for key, value in given.items()), encoding="utf-8")
    return path


@pytest.mark.parametrize("output", ["text", "json"])
def test_migrate_shows_no_secret_of_another_sink(
    tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    connectors = [written(tmp_path, f"{number}.json", one) for number, one in enumerate((ICEBERG, S3, HDFS))]
    worker = written(tmp_path, "worker.properties", WORKER)
    streamer = written(tmp_path, "streamer.properties", STREAMER)
    asked = [["--from", str(one), "--worker", str(worker)] for one in connectors]
    asked.append(["--from", str(streamer)])
    for words in asked:
        assert cli.run(["migrate", *words, "--output", output]) == 0
        made = tmp_path / "made.toml"
        assert cli.run(["migrate", *words, "--output", output, "--out", str(made), "--force"]) == 0
        said = capsys.readouterr()
        assert MARKER.findall(said.out + said.err + made.read_text()) == [], words


@pytest.mark.parametrize("words", ON_COMMAND_LINES, ids=lambda words: words[1].partition("=")[0])
def test_a_command_line_with_a_secret_is_refused_and_the_secret_is_not_repeated(
    tmp_path: Path, words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Other users of the machine read it in the process list, and in what Spark keeps of it."""
    path = tmp_path / "p.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    code = cli.run(["run", "-c", str(path), "--print-command", *words])
    said = capsys.readouterr()
    assert code == 2 and "a secret, given on a command line" in said.err
    assert MARKER.findall(said.out + said.err) == []


@pytest.mark.parametrize("words", PASSED_ON, ids=lambda words: words[1])
def test_a_reference_or_a_name_that_sounds_like_a_secret_is_passed_on(
    tmp_path: Path, words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PIPELINE.partition("[hooks]")[0] + '[hooks]\nwebhook = "http://h/"\n', encoding="utf-8")
    assert cli.run(["run", "-c", str(path), "--print-command", *words]) == 0, capsys.readouterr().err
    assert words[1].partition("=")[2] in capsys.readouterr().out.replace("'", "")


def test_a_pipelines_file_keeps_its_secrets_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    path = tmp_path / "p.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    for words in (
        ["run", "-c", str(path), "--print-command"],
        ["validate", "-c", str(path)],
        ["support", "-c", str(path), "-o", str(tmp_path / "a.zip"), "--output", "json"],
    ):
        cli.run(words)
        said = capsys.readouterr()
        assert MARKER.findall(said.out + said.err) == [], words[0]
