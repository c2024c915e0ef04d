"""What OpenLineage is told of a run and of its commits, in that library's own classes.

One event when a run begins, one for each commit, one when the run ends. Names of datasets follow
OpenLineage's naming (https://openlineage.io/docs/spec/naming), so that what others say of the same topics and
the same table is about the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    set_producer,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
    storage_dataset,
    symlinks_dataset,
)
from openlineage.client.serde import Serde

from lockstep.hooks.commits import Commit
from lockstep.hooks.port import Ending, HowEnded

REASON_CHARACTERS_MAX = 1_000
STATES: Mapping[HowEnded, RunState] = {
    HowEnded.WELL: RunState.COMPLETE,
    HowEnded.HALTED: RunState.FAIL,
    HowEnded.FAILED: RunState.FAIL,
    HowEnded.SUPERSEDED: RunState.ABORT,
}

Columns = Sequence[tuple[str, str]]
"""(name, type as DDL spells it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A dataset's name, as OpenLineage has it."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageOf:
    """What does not change while a run goes on."""

    namespace: str
    """The job's, whose name is the pipeline's."""
    pipeline: str
    version: str
    """Lockstep's own."""
    brokers: str
    """As the configuration has them."""
    topics: tuple[str, ...]
    record: Columns
    table: Named
    table_columns: Columns
    storage: str
    """Of the table: `hudi`."""
    catalog: Named | None = None
    """The table's name in a metastore."""


def table_named(scheme: str, authority: str, path: str) -> Named:
    """By the parts of its address."""
    if scheme == "file":
        return Named(namespace="file", name=path)
    if scheme in ("s3a", "gs"):
        return Named(namespace=f"{scheme.removesuffix('a')}://{authority}", name=path.strip("/"))
    return Named(namespace=f"{scheme}://{authority}", name=path)


def catalog_named(uris: str, database: str, table: str) -> Named:
    address = uris.partition(",")[0].removeprefix("thrift://")
    return Named(namespace=f"hive://{address}", name=f"{database}.{table}")


class Lineage:
    """Makes events, as JSON. `run`: Lockstep's own name, from which that follows which OpenLineage wants."""

    def __init__(self, of: LineageOf) -> None:
        self._of = of
        set_producer(f"urn:lockstep:{of.version}")

    def began(self, run: str, at_ms: int) -> str:
        return self._event(RunState.START, run, at_ms, inputs=self._inputs({}), outputs=[self._output()])

    def committed(self, commit: Commit) -> str:
        records: dict[str, int] = {}
        for one in commit.ranges:
            records[one.partition.topic] = records.get(one.partition.topic, 0) + one.records
        return self._event(
            RunState.RUNNING,
            commit.run,
            commit.completed_ms,
            inputs=self._inputs(records),
            outputs=[self._output(commit)],
        )

    def ended(self, run: str, at_ms: int, ending: Ending) -> str:
        return self._event(
            STATES[ending.how],
            run,
            at_ms,
            inputs=self._inputs({}),
            outputs=[self._output()],
            why="" if ending.how is HowEnded.WELL else ending.reason,
        )

    def _event(
        self,
        state: RunState,
        run: str,
        at_ms: int,
        *,
        inputs: list[InputDataset],
        outputs: list[OutputDataset],
        why: str = "",
    ) -> str:
        of = self._of
        job = Job(
            of.namespace,
            of.pipeline,
            facets={
                "jobType": job_type_job.JobTypeJobFacet(
                    processingType="STREAMING", integration="LOCKSTEP", jobType="PIPELINE"
                )
            },
        )
        facets = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=of.version, name="lockstep"
            )
        }
        if why:
            said = error_message_run.ErrorMessageRunFacet(
                message=why[:REASON_CHARACTERS_MAX], programmingLanguage="PYTHON"
            )
            facets["errorMessage"] = said  # type: ignore[assignment]
        event = RunEvent(
            eventType=state,
            eventTime=_time(at_ms),
            run=Run(run_id(of.pipeline, run), facets=facets),  # type: ignore[arg-type]
            job=job,
            inputs=inputs,
            outputs=outputs,
        )
        return Serde.to_json(event)

    def _inputs(self, records: Mapping[str, int]) -> list[InputDataset]:
        host = self._of.brokers.partition(",")[0].rpartition("://")[2]
        return [
            InputDataset(
                namespace=f"kafka://{host}",
                name=topic,
                facets={"schema": _schema(self._of.record)},
                inputFacets={
                    "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                        rowCount=records[topic]
                    )
                }
                if topic in records
                else {},
            )
            for topic in self._of.topics
        ]

    def _output(self, commit: Commit | None = None) -> OutputDataset:
        of = self._of
        facets: dict[str, DatasetFacet] = {
            "schema": _schema(of.table_columns),
            "storage": storage_dataset.StorageDatasetFacet(storageLayer=of.storage, fileFormat="parquet"),
        }
        if of.catalog is not None:
            other = symlinks_dataset.Identifier(
                namespace=of.catalog.namespace, name=of.catalog.name, type="TABLE"
            )
            facets["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(identifiers=[other])
        if commit is None:
            return OutputDataset(namespace=of.table.namespace, name=of.table.name, facets=facets)
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=commit.instant)
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=commit.rows, size=commit.size_bytes, fileCount=commit.files
        )
        return OutputDataset(
            namespace=of.table.namespace,
            name=of.table.name,
            facets=facets,
            outputFacets={"outputStatistics": statistics},
        )


def run_id(pipeline: str, run: str) -> str:
    """The same for each event of a run, whoever sends it."""
    return str(uuid5(NAMESPACE_URL, f"lockstep:{pipeline}:{run}"))


def _schema(columns: Columns) -> schema_dataset.SchemaDatasetFacet:
    fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=kind) for name, kind in columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields)


def _time(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
