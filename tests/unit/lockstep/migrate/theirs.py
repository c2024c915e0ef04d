"""Configurations as the products' own documents have them, each with what only its user can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
PARTITIONERS = "io.confluent.connect.storage.partitioner."

WORKER = {
    "bootstrap.servers": "localhost:9092",
    "group.id": "connect-cluster",
    "key.converter": STRING,
    "value.converter": AVRO,
    "value.converter.schema.registry.url": "http://localhost:8081",
    "offset.storage.topic": "connect-offsets",
}


@dataclass(frozen=True, kw_only=True)
class Example:
    """`said`: by `--set`, what theirs leaves open. `expected`: settings that come of it."""

    kind: str
    given: Mapping[str, str]
    options: tuple[str, ...] = ()
    worker: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    expected: Mapping[str, object] = field(default_factory=dict)


HDFS = {
    "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
    "tasks.max": "1",
    "hdfs.url": "hdfs://localhost:9000",
    "flush.size": "3",
    "key.converter": STRING,
    "value.converter": AVRO,
    "value.converter.schema.registry.url": "http://localhost:8081",
    "confluent.topic.bootstrap.servers": "localhost:9092",
    "confluent.topic.replication.factor": "1",
}
S3 = {
    "name": "s3-sink",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "1",
    "topics": "s3_topic",
    "s3.region": "us-west-2",
    "s3.bucket.name": "confluent-kafka-connect-s3-testing",
    "s3.part.size": "5242880",
    "flush.size": "3",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.avro.AvroFormat",
    "schema.compatibility": "NONE",
}
HUDI = {
    "name": "hudi-sink",
    "bootstrap.servers": "localhost:9092",
    "connector.class": "org.apache.hudi.connect.HoodieSinkConnector",
    "tasks.max": "4",
    "key.converter": STRING,
    "value.converter": STRING,
    "value.converter.schemas.enable": "false",
    "topics": "hudi-test-topic",
    "hoodie.table.name": "hudi-test-topic",
    "hoodie.datasource.write.recordkey.field": "volume",
    "hoodie.datasource.write.partitionpath.field": "date",
    "hoodie.schemaprovider.class": "org.apache.hudi.schema.SchemaRegistryProvider",
}
STOCKS = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.datasource.write.recordkey.field": "key",
    "hoodie.datasource.write.partitionpath.field": "date",
    "hoodie.streamer.schemaprovider.source.schema.file": "/var/demo/config/schema.avsc",
    "hoodie.streamer.schemaprovider.target.schema.file": "/var/demo/config/schema.avsc",
    "hoodie.streamer.source.kafka.topic": "stock_ticks",
    "bootstrap.servers": "kafkabroker:9092",
    "auto.offset.reset": "earliest",
}
ICEBERG = {
    "name": "events-sink",
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "topics": "events",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "https://localhost",
    "iceberg.catalog.credential": "not-to-be-seen",
    "iceberg.catalog.warehouse": "lake",
}
KEPT = "/tmp/hudi-streamer-op"
STREAMER = "org.apache.hudi.utilities.streamer.HoodieStreamer"
BROKERS = "source.bootstrap_servers=localhost:9092"
STOCK_COLUMNS = "record.schema=`key` STRING, `date` STRING, ts STRING, volume BIGINT"
HUDI_COLUMNS = "record.schema=volume BIGINT, `date` STRING"
LAKE = "table.path=s3a://lake/events"

EXAMPLES: Mapping[str, Example] = {
    "hdfs, parquet by field": Example(
        kind="hdfs",
        given={
            **HDFS,
            "name": "hdfs3-parquet-field",
            "topics": "parquet_field_hdfs",
            "format.class": "io.confluent.connect.hdfs3.parquet.ParquetFormat",
            "partitioner.class": f"{PARTITIONERS}FieldPartitioner",
            "partition.field.name": "is_customer",
        },
        said=(BROKERS,),
        expected={
            "pipeline.id": "hdfs3-parquet-field",
            "record.format": "avro",
            "registry.url": "http://localhost:8081",
            "table.partition_by": ["is_customer"],
            "table.path": "hdfs://localhost:9000/lockstep/parquet_field_hdfs",
            "transaction.interval": "10s",
        },
    ),
    "hdfs, hive and an hour": Example(
        kind="hdfs",
        given={
            **HDFS,
            "name": "hdfs-hive",
            "topics": "test_hdfs",
            "format.class": "io.confluent.connect.hdfs3.parquet.ParquetFormat",
            "hive.integration": "true",
            "hive.metastore.uris": "thrift://localhost:9083",
            "hive.database": "lake",
            "schema.compatibility": "BACKWARD",
            "partitioner.class": f"{PARTITIONERS}HourlyPartitioner",
            "locale": "en",
            "timezone": "Europe/Berlin",
            "rotate.interval.ms": "3600000",
        },
        worker=WORKER,
        expected={
            "hooks.hive": "thrift://localhost:9083",
            "hooks.hive_database": "lake",
            "transaction.interval": "1h",
            "transaction.write_timeout": "1h",
            "source.bootstrap_servers": "localhost:9092",
        },
    ),
    "hdfs 2, the quick start": Example(
        kind="hdfs",
        given={
            "name": "hdfs-sink",
            "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
            "tasks.max": "1",
            "topics": "test_hdfs",
            "hdfs.url": "hdfs://localhost:9000",
            "flush.size": "3",
        },
        worker=WORKER,
        expected={"table.name": "test_hdfs", "record.key_format": "string"},
    ),
    "s3, the quick start": Example(
        kind="s3",
        given={**S3, "partitioner.class": f"{PARTITIONERS}DefaultPartitioner"},
        worker=WORKER,
        expected={
            "table.path": "s3a://confluent-kafka-connect-s3-testing/lockstep/s3_topic",
            "storage.region": "us-west-2",
            "storage.part_size": "5MiB",
            "table.partition_by": [],
        },
    ),
    "s3, by the time of records": Example(
        kind="s3",
        given={
            **S3,
            "partitioner.class": f"{PARTITIONERS}TimeBasedPartitioner",
            "partition.duration.ms": "3600000",
            "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
            "locale": "en",
            "timezone": "UTC",
            "timestamp.extractor": "Record",
            "flush.size": "100000",
            "rotate.schedule.interval.ms": "600000",
            "s3.ssea.name": "aws:kms",
            "s3.sse.kms.key.id": "arn:aws:kms:us-west-2:1:key/2",
            "behavior.on.null.values": "ignore",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        },
        worker=WORKER,
        said=("record.schema=id STRING",),
        expected={
            "transaction.schedule": "every 10m",
            "transaction.interval": "20m",
            "table.partition_by": [
                f'format(_kafka_timestamp, "{pattern}", "UTC") as {name}'
                for pattern, name in (("yyyy", "year"), ("MM", "month"), ("dd", "day"), ("HH", "hour"))
            ],
            "transaction.max_records": 100_000,
            "storage.encryption": "aws:kms",
            "record.format": "json",
            "record.on_error": "dead_letter",
        },
    ),
    "s3, as somebody else, into a store of one's own": Example(
        kind="s3",
        given={
            **S3,
            "store.url": "http://minio:9000",
            "aws.access.key.id": "not-to-be-seen-id",
            "aws.secret.access.key": "not-to-be-seen-key",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "s3-dlq",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
        worker=WORKER,
        expected={
            "storage.endpoint": "http://minio:9000",
            "storage.path_style": True,
            "storage.credentials": "keys",
            "storage.access_key": "${env:LAKE_ACCESS_KEY}",
            "storage.secret_key": "${env:LAKE_SECRET_KEY}",
            "record.dead_letter_topic": "s3-dlq",
        },
    ),
    "s3, by a role": Example(
        kind="s3",
        given={
            **S3,
            "s3.credentials.provider.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
            "s3.credentials.provider.sts.role.arn": "arn:aws:iam::012345678901:role/my-restricted-role",
            "s3.credentials.provider.sts.role.session.name": "session-name",
            "s3.credentials.provider.sts.role.external.id": "not-to-be-seen",
        },
        worker=WORKER,
        expected={
            "storage.credentials": "role",
            "storage.role": "arn:aws:iam::012345678901:role/my-restricted-role",
            "storage.external_id": "${env:LAKE_EXTERNAL_ID}",
        },
    ),
    "hudi connect, the demo": Example(
        kind="hudi-connect",
        given={
            **HUDI,
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.metadata.enable": "false",
            "hoodie.base.path": "file:///tmp/hoodie/hudi-test-topic",
            "hoodie.deltastreamer.schemaprovider.registry.url": (
                "http://localhost:8081/subjects/hudi-test-topic/versions/latest"
            ),
            "hoodie.keep.max.commits": "10",
            "hoodie.keep.min.commits": "8",
            "hoodie.cleaner.commits.retained": "6",
        },
        said=(HUDI_COLUMNS,),
        expected={
            "table.kind": "insert",
            "table.path": "file:///tmp/hoodie/hudi-test-topic-lockstep",
            "table.key": ["volume"],
            "table.partition_by": ["date"],
            "transaction.interval": "1m",
            "transaction.write_timeout": "5m",
        },
    ),
    "hudi connect, the demo with hive": Example(
        kind="hudi-connect",
        given={
            **HUDI,
            "bootstrap.servers": "kafkabroker:9092",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.base.path": "hdfs://namenode:8020/user/hive/warehouse/hudi-test-topic",
            "hoodie.streamer.schemaprovider.registry.url": (
                "http://localhost:8082/subjects/hudi-test-topic/versions/latest"
            ),
            "hoodie.kafka.commit.interval.secs": "60",
            "hoodie.meta.sync.enable": "true",
            "hoodie.meta.sync.classes": "org.apache.hudi.hive.HiveSyncTool",
            "hoodie.datasource.hive_sync.table": "huditesttopic",
            "hoodie.datasource.hive_sync.partition_fields": "date",
            "hoodie.datasource.hive_sync.partition_extractor_class": (
                "org.apache.hudi.hive.MultiPartKeysValueExtractor"
            ),
            "hoodie.datasource.hive_sync.use_jdbc": "false",
            "hoodie.datasource.hive_sync.mode": "hms",
            "dfs.client.use.datanode.hostname": "true",
            "hive.metastore.uris": "thrift://hivemetastore:9083",
            "hive.metastore.client.socket.timeout": "1500s",
        },
        said=(HUDI_COLUMNS,),
        expected={
            "table.path": "hdfs://namenode/user/hive/warehouse/hudi-test-topic",
            "hooks.hive": "thrift://hivemetastore:9083",
            "hooks.hive_table": "huditesttopic",
            "table.kafka_columns": False,
        },
    ),
    "streamer, the docker demo": Example(
        kind="streamer",
        given=STOCKS,
        options=(
            *("--table-type", "COPY_ON_WRITE", "--op", "INSERT"),
            *("--source-class", "org.apache.hudi.utilities.sources.JsonKafkaSource"),
            *(
                "--source-ordering-field",
                "ts",
                "--target-base-path",
                "hdfs://namenode:8020/user/hive/warehouse/stock_ticks_cow",
            ),
            *("--target-table", "stock_ticks_cow", "--props", "/var/demo/config/kafka-source.properties"),
            *("--schemaprovider-class", "org.apache.hudi.utilities.schema.FilebasedSchemaProvider"),
        ),
        said=(STOCK_COLUMNS,),
        expected={
            "table.path": "hdfs://namenode/user/hive/warehouse/stock_ticks_cow",
            "table.kind": "insert",
            "table.key": ["key"],
            "source.starting_offsets": "earliest",
            "source.topics": ["stock_ticks"],
        },
    ),
    "streamer, the docker demo merged on read": Example(
        kind="streamer",
        given={**STOCKS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
        options=(
            *("--table-type", "MERGE_ON_READ", "--disable-compaction"),
            *("--source-class", "org.apache.hudi.utilities.sources.JsonKafkaSource"),
            *(
                "--source-ordering-field",
                "ts",
                "--target-base-path",
                "hdfs://namenode:8020/user/hive/warehouse/stock_ticks_mor",
            ),
            *("--target-table", "stock_ticks_mor", "--continuous", "--min-sync-interval-seconds", "30"),
            *("--hoodie-conf", "hoodie.streamer.kafka.source.maxEvents=100000"),
        ),
        said=(STOCK_COLUMNS.replace("ts STRING", "ts BIGINT"),),
        expected={
            "table.kind": "upsert",
            "table.path": "hdfs://namenode/user/hive/warehouse/stock_ticks_mor",
            "table.ordering": "ts",
            "table.buckets": 4,
            "services.compaction": "off",
            "transaction.interval": "30s",
            "transaction.max_records": 100_000,
        },
    ),
    "streamer, avro of a registry": Example(
        kind="streamer",
        given={
            "include": "base.properties",
            "hoodie.datasource.write.recordkey.field": "impressionid",
            "hoodie.datasource.write.partitionpath.field": "userid",
            "hoodie.streamer.schemaprovider.registry.url": (
                "http://localhost:8081/subjects/impressions-value/versions/latest"
            ),
            "hoodie.streamer.source.kafka.topic": "impressions",
            "bootstrap.servers": "localhost:9092",
            "auto.offset.reset": "earliest",
            "schema.registry.url": "http://localhost:8081",
        },
        options=(
            *("spark-submit", "--packages", "org.apache.hudi:hudi-utilities-slim-bundle_2.12:1.0.1"),
            *("--class", STREAMER, "hudi-utilities-slim-bundle.jar"),
            *("--schemaprovider-class", "org.apache.hudi.utilities.schema.SchemaRegistryProvider"),
            *("--source-class", "org.apache.hudi.utilities.sources.AvroKafkaSource"),
            *("--source-ordering-field", "impressiontime", "--target-base-path", f"file://{KEPT}"),
            *("--target-table", "uber.impressions", "--op", "BULK_INSERT"),
        ),
        expected={
            "record.format": "avro",
            "registry.url": "http://localhost:8081",
            "table.path": f"file://{KEPT}",
            "table.name": "uber_impressions",
        },
    ),
    "iceberg, one table": Example(
        kind="iceberg",
        given={**ICEBERG, "iceberg.tables": "default.events"},
        worker=WORKER,
        said=(LAKE,),
        expected={"table.name": "events", "transaction.interval": "5m", "transaction.write_timeout": "5m"},
    ),
    "iceberg, static routes": Example(
        kind="iceberg",
        given={
            **ICEBERG,
            "iceberg.tables": "default.events_list,default.events_create",
            "iceberg.tables.route-field": "type",
            "iceberg.table.default.events_list.route-regex": "list",
            "iceberg.table.default.events_create.route-regex": "create",
        },
        worker=WORKER,
        said=(LAKE,),
        expected={"table.name": "events_list"},
    ),
    "iceberg, dynamic routes": Example(
        kind="iceberg",
        given={**ICEBERG, "iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "db_table"},
        worker=WORKER,
        said=(LAKE,),
    ),
    "iceberg, a hive catalog in S3": Example(
        kind="iceberg",
        given={
            **ICEBERG,
            "iceberg.tables": "default.events",
            "iceberg.table.default.events.id-columns": "id",
            "iceberg.table.default.events.partition-by": "region",
            "iceberg.tables.evolve-schema-enabled": "true",
            "iceberg.control.commit.interval-ms": "60000",
            "iceberg.catalog.type": "hive",
            "iceberg.catalog.uri": "thrift://hive:9083",
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "iceberg.catalog.warehouse": "s3a://bucket/warehouse",
            "iceberg.catalog.client.region": "us-east-1",
            "iceberg.catalog.s3.access-key-id": "not-to-be-seen-id",
            "iceberg.catalog.s3.secret-access-key": "not-to-be-seen-key",
        },
        worker=WORKER,
        expected={
            "table.path": "s3a://bucket/warehouse/lockstep/events",
            "table.key": ["id"],
            "table.partition_by": ["region"],
            "record.on_schema_change": "evolve",
            "transaction.interval": "1m",
            "storage.region": "us-east-1",
        },
    ),
}
