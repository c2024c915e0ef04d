"""The sections of the configuration that say what the table is, where it is, and what keeps it in order.

As in `lockstep.config.sections`: every setting once, with its type, default, meaning and limits.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from lockstep.config import values
from lockstep.config.partition_values import PartitionBy
from lockstep.config.retention_values import RetentionMs, RetentionPattern
from lockstep.config.sections import Section, meanings
from lockstep.config.units import format_share, parse_share
from table.kinds import HUDI, OFFERED
from table.partitioners.expressions import FUNCTIONS

Share = Annotated[float, BeforeValidator(parse_share), PlainSerializer(format_share)]


class TableSection(Section):
    """The Hudi table. Created when missing; where it exists, its own properties win."""

    path: values.TablePath = Field(
        description=(
            "The table's base path. On a file system a `file://` URI, under which driver and workers must "
            "see the same files; on HDFS `hdfs://` and its name node, or name service, and the path; in an "
            "object store an `s3a://` address (`s3://` is taken as the same), `gs://` for Google's, or "
            "`abfss://` for Azure's. See `storage` for all of these. Other schemes are refused."
        ),
        examples=["file:///data/lake/events"],
    )
    name: values.TableName = Field(description="The table's name.", examples=["events"])
    format: values.TableFormat = Field(
        default=HUDI, description=f"What kind of table it is: {meanings(OFFERED)}."
    )
    kind: values.TableKind = Field(
        default="insert",
        description=(
            "How records become rows: `insert`, every record a new row of a copy-on-write table; `upsert`, "
            "every record a change of the row with its key, in a merge-on-read table with a bucket index. A "
            "record without a value deletes the row that its Kafka key names."
        ),
    )
    key: values.Names = Field(
        default=(),
        description=(
            "The fields of the record key. Empty: `topic-partition-offset`, unique and the same again on "
            "replay. Upserts need at least one."
        ),
        examples=[["event_id"]],
    )
    partition_by: PartitionBy = Field(
        default=(),
        description=(
            "The field that says a row's table partition, or a function of one, or a list of such, the outer "
            f"folder's first: {', '.join(f'`{one}`' for one in FUNCTIONS.values())}. docs/partitioning.md "
            "says what each does. Empty: the table is not partitioned."
        ),
        examples=[["region", "day(ts)"]],
    )
    ordering: str = Field(
        default="",
        description=(
            "Upserts: the field that says which of two versions of a row is newer (Hudi's "
            "EVENT_TIME_ORDERING; of equal ones the later counts). Empty: the later one, whatever it holds "
            "(COMMIT_TIME_ORDERING). Change events of Debezium's are ordered by their position in the source."
        ),
        examples=["ts"],
    )
    buckets: int = Field(
        default=16,
        ge=1,
        le=100_000,
        description=(
            "Upserts: into how many file groups the keys of a table partition are divided, by Hudi's bucket "
            "index. Kept with the table; it cannot be changed afterwards. Some 1 GB of rows in each is good."
        ),
    )
    delete_field: str = Field(
        default="",
        description="Upserts: the BOOLEAN field that is true where a record deletes its row. Empty: none.",
        examples=["deleted"],
    )
    kafka_columns: bool = Field(
        default=True,
        description=(
            "Whether rows carry `_kafka_topic`, `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp` "
            "(of one outside of the years 1 to 9999 the nearest). "
            "Without them `lockstep verify` cannot check every offset."
        ),
    )
    target_file_bytes: values.SizeBytes = Field(
        default="120MB",
        validate_default=True,
        alias="target_file_size",
        description="A worker closes a file at about this size and goes on in the next. From 1MB to 1TB.",
    )
    sort_by: values.Names = Field(
        default=(),
        description=(
            "Inserts: fields by which rows are sorted where `services.clustering` puts small files together, "
            "so that readers who filter by the first of them skip most of a file. Empty: rows stay in the "
            "order in which they came, and files are put together for a fraction of the CPU."
        ),
        examples=[["user_id"]],
    )
    bloom_filters: values.Names = Field(
        default=(),
        description=(
            "Inserts: STRING, INT and BIGINT fields of which files get parquet's bloom filters, so that "
            "readers who look for one value (`event_id = '…'`) leave out nearly all row groups that lack it, "
            "as Spark does by itself. Each costs some two bytes a row; see "
            "[operations](operations.md#what-readers-leave-out). Empty: none."
        ),
        examples=[["event_id"]],
    )
    retention_ms: RetentionMs = Field(
        default="0",
        validate_default=True,
        alias="retention",
        description=(
            "How long a table partition lives whose value is a time: it is taken out once its day (month, "
            "hour …) is over for longer, beside the transactions, and its files are removed by a later "
            "cleaning. The time is said by the one function of a time in `partition_by`, or by its only "
            "field, a DATE or STRING, or by `retention_by`. See "
            "[operations](operations.md#table-partitions-that-are-past-their-time). In days, "
            '`"90d"`, or as any duration; from 1h. Not of upserts. 0: for ever.'
        ),
        examples=["90d"],
    )
    retention_pattern: RetentionPattern = Field(
        default="",
        description=(
            "How a STRING field in `partition_by` spells that time, in UTC, in the letters of "
            "[format()](partitioning.md#functions): `yyyyMMdd`, `yyyy-MM-dd-HH`, `yyyy/M/d`. What is not "
            "spelled so lives for ever. Empty: `yyyy-MM-dd`, as a DATE is."
        ),
        examples=["yyyy-MM-dd-HH"],
    )
    retention_by: str = Field(
        default="",
        description=(
            "The TIMESTAMP, TIMESTAMP_NTZ or DATE field, or `_kafka_timestamp`, by which a table partition "
            "ages, whatever its value: it is taken out once the newest one in all of its rows is older than "
            "`retention`. Nulls say nothing, and one with nothing but nulls stays. Empty: its value says it."
        ),
        examples=["ts"],
    )
    hudi: values.Properties = Field(
        default_factory=dict,
        repr=False,
        description="Any `hoodie.*` property that the write client obeys; one it would ignore is refused.",
    )


class StorageSection(Section):
    """How the object store, or HDFS, is reached that the table is in, by workers and Spark alike."""

    config_folder: values.ConfigFolder = Field(
        default="",
        description=(
            "HDFS, and all that is to be said there: the folder of the cluster's `core-site.xml` and "
            "`hdfs-site.xml`, under the same path on driver and workers. They say which the name nodes of a "
            "name service are. Empty: what `HADOOP_CONF_DIR` names, where that is set."
        ),
        examples=["/etc/hadoop/conf"],
    )
    endpoint: values.Endpoint = Field(
        default="",
        description=(
            "The store's address. Empty: AWS's own, Google's, or Azure's. `http://` is taken as it is "
            "written."
        ),
        examples=["https://s3.example.org"],
    )
    region: str = Field(
        default="",
        description="The bucket's region. Empty: what AWS's variables and files say, else `us-east-1`.",
        examples=["eu-central-1"],
    )
    path_style: bool = Field(
        default=False,
        description=(
            "Whether the bucket is the first part of a request's path instead of the host's name, as most "
            "servers want it that are not AWS."
        ),
    )
    credentials: Literal[
        "chain",
        "profile",
        "role",
        "web_identity",
        "keys",
        "key_file",
        "none",
        "account_key",
        "client_secret",
        "managed_identity",
    ] = Field(
        default="chain",
        description=(
            "Where credentials come from. `chain`: what AWS's own tools find (variables, files, the role of "
            "machine or pod); `profile`: `storage.profile`; `role`: `storage.role` is assumed, by "
            "`storage.profile` or the chain; `web_identity`: `storage.role` for the token in "
            "`storage.token_file`; `keys`: `storage.access_key` and `storage.secret_key`. What ends is "
            "renewed, keys aside. Of Google's storage: `chain`: what Google's own tools find; `key_file`: "
            "`storage.key_file`; `none`: none, for a server of one's own. Of Azure's one of these must be "
            "said: `account_key`: `storage.account_key`; `client_secret`: an application's, with "
            "`storage.tenant`, `storage.client_id` and `storage.client_secret`; `managed_identity`: the "
            "machine's, by `storage.client_id` where it has several."
        ),
    )
    profile: str = Field(default="", description="A profile of AWS's files, on driver and workers.")
    role: str = Field(
        default="",
        description="The ARN of a role to assume.",
        examples=["arn:aws:iam::123456789012:role/lake"],
    )
    role_endpoint: values.Endpoint = Field(
        default="",
        description=(
            "Who is asked for the role of `role`: of a server of one's own often `storage.endpoint` itself, "
            "in a network without a way out AWS's by another name. Empty: AWS's own, in the bucket's region."
        ),
        examples=["https://s3.example.org"],
    )
    external_id: values.SecretReference = Field(
        default="", repr=False, description="For a role that asks for one, as a reference to a secret."
    )
    token_file: str = Field(
        default="",
        description="Where the token is that is exchanged for the role, on driver and workers.",
        examples=["/var/run/secrets/eks.amazonaws.com/serviceaccount/token"],
    )
    access_key: values.SecretReference = Field(
        default="",
        repr=False,
        description='As a reference to a secret, `"${env:NAME}"` or `"${file:/path}"`, and never itself.',
        examples=["${env:LAKE_ACCESS_KEY}"],
    )
    secret_key: values.SecretReference = Field(
        default="", repr=False, description="The same.", examples=["${file:/run/secrets/lake}"]
    )
    session_token: values.SecretReference = Field(
        default="", repr=False, description="The same, of keys that end. The run fails when they do."
    )
    key_file: str = Field(
        default="",
        description="Google: the file of a service account's key, under the same path on driver and workers.",
        examples=["/run/secrets/lake.json"],
    )
    account_key: values.SecretReference = Field(
        default="",
        repr=False,
        description="Azure: a key of the storage account, as a reference to a secret.",
        examples=["${file:/run/secrets/lake}"],
    )
    tenant: str = Field(default="", description="Azure: the tenant of the application, its id.")
    client_id: str = Field(default="", description="Azure: the application, or the managed identity.")
    client_secret: values.SecretReference = Field(
        default="", repr=False, description="Azure: the application's, as a reference to a secret."
    )
    encryption: Literal["", "AES256", "aws:kms"] = Field(
        default="",
        description=(
            "How the server is to encrypt what is put: `AES256`, with its own keys; `aws:kms`, with "
            "`storage.kms_key`. Every put says so. Empty: as the bucket says."
        ),
    )
    kms_key: str = Field(default="", description="The key for `aws:kms`. Empty: the bucket's.")
    part_bytes: values.PartBytes = Field(
        default="8MiB",
        validate_default=True,
        alias="part_size",
        description=(
            "A file below this size is put at once, a larger one in parts of it, smaller ones where "
            "`memory.per_worker` is small. From 5MiB to 1GiB."
        ),
    )


class ServicesSection(Section):
    """What keeps the table in order, beside the ingestion: no transaction waits, unless it says `inline`."""

    compaction: Literal["async", "inline", "schedule", "off"] = Field(
        default="async",
        description=(
            "Upserts: who merges log files into base files. `async`: the driver, in a thread of its own and "
            "in Spark's free slots; `inline`: the driver, and the next commit waits until it is done; "
            "`schedule`: the driver plans and leaves the work to others; `off`: others do both."
        ),
    )
    compaction_every: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="Upserts: after how many commits a compaction is planned.",
    )
    clustering: Literal["async", "inline", "schedule", "off"] = Field(
        default="off",
        description=(
            "Inserts: who puts small files together, below half of `table.target_file_size`. The values are "
            "those of `services.compaction`; `hoodie.clustering.plan.strategy.*` in `table.hudi` chooses "
            "otherwise, or sorts."
        ),
    )
    clustering_files: int = Field(
        default=20,
        ge=2,
        le=10_000,
        description=(
            "Inserts: a table partition is clustered when commits have added so many small files to it, or "
            "as many as fill one of `table.target_file_size`."
        ),
    )
    clustering_after_ms: values.TimeoutMs = Field(
        default="2m",
        validate_default=True,
        alias="clustering_after",
        description=(
            "Inserts: and when it has more than two small files, one of which is so old. From 1s to 24h."
        ),
    )
    clustering_every: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description=(
            "Inserts: after how many commits the whole table is looked at for small files, whoever has "
            "written them: a table partition with more than two is clustered then. From 1 to 100,000."
        ),
    )
    clustering_share: Share = Field(
        default="25%",
        validate_default=True,
        description=(
            "Inserts: clustering is at work for so much of the time at most, in the Spark slots that workers "
            "leave free; it rests accordingly. From 1% to 100%."
        ),
    )
    cleaning: Literal["async", "inline", "off"] = Field(
        default="async",
        description=(
            "Who removes file versions that were replaced, and archives old instants, both by Hudi's own "
            "policies (`hoodie.clean.*`, `hoodie.keep.*` in `table.hudi`). `async`: the driver, in a thread "
            "of its own; `inline`: the driver, and the next commit waits; `off`: others clean, and archive; "
            "instants of inserts are archived within the commits."
        ),
    )
    cleaning_every: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="After how many commits is cleaned and archived.",
    )
    sweep_share: Share = Field(
        default="1%",
        validate_default=True,
        description=(
            "Largest share of the table's data files that a sweep removes. If it finds more orphaned files "
            "than this, and more than ten, it removes none and raises an alarm: `lockstep sweep` shows them. "
            "From 1% to 100%."
        ),
    )
