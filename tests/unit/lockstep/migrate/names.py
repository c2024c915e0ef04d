"""Every property that the products' documents, and the definitions in their sources, name, but for Hudi's own
write client's, which the table's rules know.
"""

from __future__ import annotations

CONNECT = (
    *("name", "connector.class", "tasks.max", "tasks.max.enforce", "topics", "topics.regex"),
    *("key.converter", "value.converter", "header.converter", "config.action.reload", "transforms"),
    *("predicates", "errors.tolerance", "errors.retry.timeout", "errors.retry.delay.max.ms"),
    *("errors.log.enable", "errors.log.include.messages", "errors.deadletterqueue.topic.name"),
    *("errors.deadletterqueue.topic.replication.factor",),
    *("errors.deadletterqueue.context.headers.enable", "connector.plugin.version"),
    *("value.converter.schema.registry.url", "value.converter.schemas.enable"),
    *("value.converter.basic.auth.credentials.source", "value.converter.basic.auth.user.info"),
    *("value.converter.schema.registry.basic.auth.user.info",),
    *("value.converter.bearer.auth.credentials.source", "value.converter.bearer.auth.token"),
    *("value.converter.schema.registry.ssl.truststore.location",),
    *("value.converter.schema.registry.ssl.keystore.password", "value.converter.auto.register.schemas"),
    *("value.converter.use.latest.version", "value.converter.enhanced.avro.schema.support"),
    *("value.converter.connect.meta.data", "value.converter.value.subject.name.strategy"),
    *("key.converter.key.subject.name.strategy", "key.converter.schemas.enable"),
    *("value.converter.decimal.format", "value.converter.replace.null.with.default"),
    *("value.converter.schemas.cache.size",),
)

STORAGE = (
    *("format.class", "flush.size", "rotate.interval.ms", "rotate.schedule.interval.ms"),
    *("schema.cache.size", "retry.backoff.ms", "shutdown.timeout.ms", "filename.offset.zero.pad.width"),
    *("enhanced.avro.schema.support", "connect.meta.data", "allow.optional.map.keys", "avro.codec"),
    *("parquet.codec", "schema.compatibility", "storage.class", "topics.dir", "store.url"),
    *("directory.delim", "file.delim", "partitioner.class", "partition.field.name"),
    *("partition.duration.ms", "path.format", "locale", "timezone", "timestamp.extractor"),
    *("timestamp.field", "hive.integration", "hive.metastore.uris", "hive.conf.dir", "hive.home"),
    *("hive.database", "confluent.license", "confluent.topic", "confluent.topic.bootstrap.servers"),
    *("confluent.topic.replication.factor",),
)

HDFS = (
    *("hdfs.url", "hadoop.conf.dir", "hadoop.home", "logs.dir", "hdfs.authentication.kerberos"),
    *("connect.hdfs.principal", "connect.hdfs.keytab", "hdfs.namenode.principal"),
    *("kerberos.ticket.renew.period.ms", "hive.table.name", "topic.capture.groups.regex"),
)

S3 = (
    *("s3.bucket.name", "s3.object.tagging", "s3.object.tagging.key.value.pairs"),
    *("s3.object.behavior.on.tagging.error", "s3.ssea.name", "s3.sse.customer.key"),
    *("s3.sse.kms.key.id", "s3.part.size", "s3.wan.mode", "enable.conditional.writes"),
    *("max.files.scan.limit", "s3.credentials.provider.class", "s3.credentials.provider.sts.role.arn"),
    *("s3.credentials.provider.sts.role.session.name", "s3.credentials.provider.sts.role.external.id"),
    *("s3.credentials.provider.sts.region", "aws.access.key.id", "aws.secret.access.key", "s3.region"),
    *("s3.acl.canned", "s3.compression.type", "s3.send.digest", "s3.compression.level"),
    *("s3.part.retries", "format.bytearray.extension", "format.bytearray.separator", "s3.proxy.url"),
    *("s3.proxy.user", "s3.proxy.password", "s3.http.send.expect.continue", "behavior.on.null.values"),
    *("report.null.values.to.dlq", "max.write.duration.ms", "rotate.file.on.partition.change"),
    *("s3.retry.backoff.ms", "s3.path.style.access.enabled", "json.decimal.format", "store.kafka.keys"),
    *("store.kafka.headers", "keys.format.class", "headers.format.class", "s3.elastic.buffer.enable"),
    *("s3.elastic.buffer.init.capacity", "tombstone.encoded.partition"),
    *("s3.schema.partition.affix.type", "partitioner.max.open.files"),
)

HUDI_SINK = (
    *("bootstrap.servers", "hoodie.kafka.control.topic", "hoodie.schemaprovider.class"),
    *("hoodie.kafka.commit.interval.secs", "hoodie.kafka.coordinator.write.timeout.secs"),
    *("hoodie.kafka.compaction.async.enable", "hoodie.meta.sync.enable", "hoodie.meta.sync.classes"),
    *("hoodie.kafka.allow.commit.on.errors", "hadoop.conf.dir", "hadoop.home", "hoodie.base.path"),
    *("hoodie.table.name", "hoodie.table.type", "hoodie.datasource.hive_sync.database"),
    *("hoodie.datasource.hive_sync.table", "hoodie.datasource.hive_sync.username"),
    *("hoodie.datasource.hive_sync.password", "hoodie.datasource.hive_sync.jdbcurl"),
    *("hoodie.datasource.hive_sync.partition_fields",),
    *("hoodie.datasource.hive_sync.partition_extractor_class", "hoodie.datasource.hive_sync.mode"),
    *("hoodie.datasource.hive_sync.auto_create_database",),
    *("hoodie.datasource.hive_sync.ignore_exceptions", "hoodie.datasource.hive_sync.skip_ro_suffix"),
    *("hoodie.datasource.hive_sync.support_timestamp",),
    *("hoodie.datasource.hive_sync.use_pre_apache_input_format", "hive.metastore.uris"),
)

STREAMER_OPTIONS = (
    *("--target-base-path", "--target-table", "--table-type", "--base-file-format", "--props"),
    *("--source-class", "--source-ordering-fields", "--source-ordering-field", "--payload-class"),
    *("--merge-mode", "--record-merge-mode", "--merge-strategy-id", "--record-merge-strategy-id"),
    *("--merge-impl-classes", "--record-merge-custom-implementation-classes", "--schemaprovider-class"),
    *("--transformer-class", "--source-limit", "--op", "--filter-dupes", "--enable-hive-sync"),
    *("--enable-sync", "--force-empty-sync", "--sync-tool-classes", "--max-pending-compactions"),
    *("--max-pending-clustering", "--continuous", "--min-sync-interval-seconds", "--spark-master"),
    *("--enable-hive-support", "--commit-on-errors", "--delta-sync-scheduling-weight"),
    *("--compact-scheduling-weight", "--delta-sync-scheduling-minshare"),
    *("--compact-scheduling-minshare", "--disable-compaction", "--checkpoint"),
    *("--initial-checkpoint-provider", "--run-bootstrap", "--bootstrap-overwrite"),
    *("--bootstrap-index-class", "--retry-on-source-failures", "--retry-interval-seconds"),
    *("--max-retry-count", "--allow-commit-on-no-checkpoint-change"),
    *("--retry-last-pending-inline-clustering", "--retry-last-pending-inline-compaction"),
    *("--cluster-scheduling-weight", "--cluster-scheduling-minshare"),
    *("--post-write-termination-strategy-class", "--ingestion-metrics-class"),
    *("--config-hot-update-strategy-class", "--ignore-checkpoint", "--spark-app-name"),
)

STREAMER = (
    *("hoodie.streamer.source.kafka.topic", "hoodie.streamer.source.kafka.checkpoint.type"),
    *("hoodie.streamer.source.kafka.value.deserializer.class",),
    *("hoodie.streamer.source.kafka.value.deserializer.schema",),
    *("hoodie.streamer.source.kafka.fetch_partition.time.out",),
    *("hoodie.streamer.source.kafka.enable.commit.offset",),
    *("hoodie.streamer.source.kafka.enable.failOnDataLoss", "hoodie.streamer.kafka.source.maxEvents"),
    *("hoodie.streamer.source.kafka.minPartitions",),
    *("hoodie.streamer.source.kafka.proto.value.deserializer.class",),
    *("hoodie.streamer.source.kafka.offset.skip.buffer.minutes",),
    *("hoodie.streamer.source.kafka.spark.sql.consumer.enable",),
    *("hoodie.streamer.source.kafka.ignore.prefix.config.list",),
    *("hoodie.streamer.checkpoint.provider.path", "hoodie.streamer.checkpoint.force.skip"),
    *("hoodie.streamer.source.kafka.append.offsets",),
    *("hoodie.streamer.source.sanitize.invalid.schema.field.names",),
    *("hoodie.streamer.source.sanitize.invalid.char.mask",),
    *("hoodie.streamer.ingestion.tablesToBeIngested", "hoodie.streamer.ingestion.targetBasePath"),
    *("hoodie.streamer.transformer.class", "hoodie.streamer.transformer.sql"),
    *("hoodie.streamer.sample.writes.enabled", "hoodie.streamer.sample.writes.size"),
    *("hoodie.streamer.row.throw.explicit.exceptions",),
    *("hoodie.streamer.source.json.skip.invalid.records",),
    *("hoodie.streamer.schema.make.columns.nullable", "hoodie.streamer.schemaprovider.registry.url"),
    *("hoodie.streamer.schemaprovider.registry.targetUrl",),
    *("hoodie.streamer.schemaprovider.source.schema.file",),
    *("hoodie.streamer.schemaprovider.target.schema.file", "hoodie.deltastreamer.source.kafka.topic"),
    *("hoodie.deltastreamer.schemaprovider.registry.url", "bootstrap.servers", "auto.offset.reset"),
    *("group.id", "schema.registry.url", "security.protocol"),
)

ICEBERG = (
    *("iceberg.tables", "iceberg.tables.dynamic-enabled", "iceberg.tables.route-field"),
    *("iceberg.tables.default-commit-branch", "iceberg.tables.default-id-columns"),
    *("iceberg.tables.default-partition-by", "iceberg.tables.auto-create-enabled"),
    *("iceberg.tables.evolve-schema-enabled", "iceberg.tables.schema-force-optional"),
    *("iceberg.tables.schema-case-insensitive", "iceberg.tables.replace-null-with-default"),
    *("iceberg.tables.auto-create-props.x", "iceberg.tables.write-props.x"),
    *("iceberg.table.a.b.commit-branch", "iceberg.table.a.b.id-columns"),
    *("iceberg.table.a.b.partition-by", "iceberg.table.a.b.route-regex", "iceberg.control.topic"),
    *("iceberg.control.group-id-prefix", "iceberg.control.commit.interval-ms"),
    *("iceberg.control.commit.timeout-ms", "iceberg.control.commit.threads"),
    *("iceberg.control.commit.max-consecutive-failures", "iceberg.coordinator.transactional.prefix"),
    *("iceberg.catalog", "iceberg.catalog.type", "iceberg.catalog.uri", "iceberg.catalog.s3.endpoint"),
    *("iceberg.hadoop-conf-dir", "iceberg.hadoop.fs.x", "iceberg.kafka.security.protocol"),
    *("iceberg.tables.upsert-mode-enabled", "iceberg.tables.cdc-field", "iceberg.connect.group-id"),
)

CONSUMER = (
    *("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config"),
    *("sasl.kerberos.service.name", "ssl.truststore.location", "ssl.truststore.password"),
    *("ssl.truststore.type", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
    *("ssl.key.password", "ssl.endpoint.identification.algorithm", "fetch.min.bytes"),
    *("fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes", "max.poll.records"),
    *("max.poll.interval.ms", "session.timeout.ms", "heartbeat.interval.ms", "auto.offset.reset"),
    *("enable.auto.commit", "auto.commit.interval.ms", "isolation.level", "group.id"),
    *("group.instance.id", "partition.assignment.strategy", "client.id", "client.rack"),
    *("request.timeout.ms", "default.api.timeout.ms", "connections.max.idle.ms"),
    *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "receive.buffer.bytes"),
    *("send.buffer.bytes", "metadata.max.age.ms", "key.deserializer", "value.deserializer"),
    *("interceptor.classes", "metric.reporters", "check.crcs", "allow.auto.create.topics"),
    *("client.dns.lookup", "exclude.internal.topics", "ssl.cipher.suites", "ssl.enabled.protocols"),
    *("sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"),
    *("sasl.login.refresh.window.factor",),
)
