"""A whole configuration, and what others are told of it: a table's specification, that of its records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from lockstep.config.hook_sections import HooksSection
from lockstep.config.hooks import redacted_hooks
from lockstep.config.partition_section import PartitionSection
from lockstep.config.record_section import RecordSection
from lockstep.config.registry_section import RegistrySection, registry_settings, schema_text
from lockstep.config.secrets import redact
from lockstep.config.sections import (
    DEAD_LETTER_SUFFIX,
    ControlSection,
    LogSection,
    MemorySection,
    MetricsSection,
    PipelineSection,
    Section,
    SourceSection,
    TransactionSection,
)
from lockstep.config.storage import store_settings
from lockstep.config.table_sections import ServicesSection, StorageSection, TableSection
from lockstep.config.ui_section import UiSection
from participant.records.changes import EVOLVE
from participant.records.kinds import ENVELOPES
from table.partitioners.bounds import LATE, Bounds
from table.partitioners.expressions import TablePartitions

if TYPE_CHECKING:
    from participant.records.port import RecordSpec
    from table.port import TableSpec
    from table.store.settings import StoreSettings
    from table.watermark import MarkRule


class Config(Section):
    """A whole configuration, valid in itself. Made by `lockstep.config.load`, shipped with `to_json`."""

    pipeline: PipelineSection
    source: SourceSection
    record: RecordSection
    registry: RegistrySection = Field(default_factory=RegistrySection)
    table: TableSection
    partition: PartitionSection = Field(default_factory=PartitionSection)
    transaction: TransactionSection = Field(default_factory=TransactionSection)
    storage: StorageSection = Field(default_factory=StorageSection)
    services: ServicesSection = Field(default_factory=ServicesSection)
    control: ControlSection
    memory: MemorySection = Field(default_factory=MemorySection)
    ui: UiSection = Field(default_factory=UiSection)
    metrics: MetricsSection = Field(default_factory=MetricsSection)
    log: LogSection = Field(default_factory=LogSection)
    hooks: HooksSection = Field(default_factory=HooksSection)

    @property
    def sweep_grace_ms(self) -> int:
        """Age below which a data file may still be of an open transaction, in milliseconds."""
        return max(60_000, 2 * (self.transaction.write_timeout_ms + self.transaction.interval_ms))

    @property
    def group_id(self) -> str:
        """The Kafka consumer group: exactly the pipeline's id."""
        return self.pipeline.id

    @property
    def ordering_field(self) -> str:
        """The column that decides between versions of a row; empty where the later one counts."""
        from table.schema import POSITION_COLUMN

        return POSITION_COLUMN if self._brings_order else self.table.ordering

    @property
    def _brings_order(self) -> bool:
        """Whether records say by themselves which of two is newer."""
        return ENVELOPES[self.record.envelope].brings_order

    @property
    def dead_letter_topics(self) -> tuple[str, ...]:
        """All of them; none where a record that does not fit halts the run."""
        if self.record.on_error != "dead_letter":
            return ()
        return tuple(sorted({self.dead_letter_topic(topic) for topic in self.source.topics}))

    def dead_letter_topic(self, source_topic: str) -> str:
        """Where a record of this source topic goes that does not fit."""
        return self.record.dead_letter_topic or source_topic + DEAD_LETTER_SUFFIX

    def table_spec(self) -> TableSpec:
        """What this configuration asks of the table."""
        from table.port import TableSpec

        partitions = TablePartitions.of(self.table.partition_by)
        return TableSpec(
            path=self.table.path,
            name=self.table.name,
            mode=self.table.kind,
            ddl=self.record.ddl,
            key_fields=self.table.key,
            partition_fields=partitions.partition_fields,
            partition_terms=partitions.partition_terms,
            partition_bounds=Bounds(
                max_age_ms=self.partition.max_age_ms,
                max_ahead_ms=self.partition.max_ahead_ms,
                set_aside=self.partition.beyond == LATE,
            ),
            kafka_columns=self.table.kafka_columns,
            target_file_bytes=self.table.target_file_bytes,
            sort_fields=self.table.sort_by,
            lookup_fields=self.table.bloom_filters,
            ordering_field=self.ordering_field,
            bucket_count=self.table.buckets,
            source_position=self._brings_order,
            follows=self.record.changes == EVOLVE,
            compaction=self.services.compaction,
            compaction_every=self.services.compaction_every,
            clustering=self.services.clustering,
            clustering_every=self.services.clustering_every,
            clustering_files=self.services.clustering_files,
            clustering_after_ms=self.services.clustering_after_ms,
            clustering_share=self.services.clustering_share,
            cleaning=self.services.cleaning,
            cleaning_every=self.services.cleaning_every,
            sweep_share=self.services.sweep_share,
            retention_ms=self.table.retention_ms,
            retention_pattern=self.table.retention_pattern,
            retention_field=self.table.retention_by,
            properties=dict(self.table.hudi),
            storage=self.store_settings(),
        )

    def store_settings(self) -> StoreSettings | None:
        """How the table's store is reached, where that has to be told, with secrets resolved in this process.

        Raises `ConfigError`.
        """
        return store_settings(self.table.path, self.storage)

    def record_spec(self) -> RecordSpec:
        """What this configuration says of records, with secrets resolved in this process, and files read.

        Raises `ConfigError`.
        """
        from participant.records.port import RecordSpec

        return RecordSpec(
            format=self.record.format,
            key_format=self.record.key_format,
            envelope=self.record.envelope,
            delete_field=self.table.delete_field,
            framing=self.record.framing,
            schema_text=schema_text("record.schema_file", self.record.schema_file, self.record.format),
            key_schema_text=schema_text(
                "record.key_schema_file", self.record.key_schema_file, self.record.key_format
            ),
            message=self.record.message,
            key_message=self.record.key_message,
            registry=registry_settings(self.record, self.registry),
            decoder=self.record.decoder,
            columns=tuple(self.record.columns.items()),
            rest=self.record.rest,
            on_schema_change=self.record.changes,
            event_time=self.record.event_time,
            event_time_unit=self.record.event_time_unit,
            ahead_max_ms=self.record.ahead_max_ms,
            unavailable_value=self.record.unavailable_value,
            decimal_handling=self.record.decimal_handling,
            on_no_field=self.record.on_no_field,
        )

    def mark_rule(self) -> MarkRule | None:
        """How the table's watermark is moved; None where no event time is declared."""
        from table.watermark import MarkRule

        record = self.record
        if not record.event_time:
            return None
        return MarkRule(
            of=record.event_time_declared,
            lateness_ms=record.lateness_ms,
            idle_after_ms=record.idle_after_ms,
        )

    def to_mapping(self) -> dict[str, dict[str, Any]]:
        """Section -> name -> value as the file would have it. References to secrets stay references."""
        return self.model_dump(by_alias=True, mode="json")

    def redacted(self) -> dict[str, dict[str, Any]]:
        """`to_mapping` for showing: literal secrets are hidden."""
        mapping = self.to_mapping()
        mapping["source"]["kafka"] = redact(self.source.kafka)
        mapping["table"]["hudi"] = redact(self.table.hudi)
        mapping["hooks"].update(redacted_hooks(self.hooks))
        return mapping

    def to_json(self) -> str:
        """Lossless, for another process. Not for a command line or a log: a literal secret is still in it."""
        return json.dumps(self.to_mapping(), separators=(",", ":"))


SECTIONS: Mapping[str, type[Section]] = {
    name: field.annotation  # type: ignore[misc]
    for name, field in Config.model_fields.items()
}
"""Section name -> its model, in the order of the file."""
