"""A whole pipeline into Azure's storage, as its user has it: Hadoop's connector, Azurite, and our endpoint
before it.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lockstep.config import from_mapping
from lockstep.errors import EXIT_FAILED
from lockstep.validate import check_storage
from tests.azure.server import DFS_HOST, KEY, AzureServer, authority_of
from tests.azure_fixture import CONTAINER
from tests.harness import Pipeline
from tests.integration.test_s3_pipeline import tried_from_both, written_and_read
from tests.integration.test_upsert_pipelines import compact
from tests.place import AZURE_VARIABLE, OnAzure

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("azure")]

DEADLINE_S = 240
ANOTHER_KEY = "YW5vdGhlciBrZXk="


def at_azure(pipeline: Pipeline, azure: AzureServer, *, kind: str = "insert") -> OnAzure:
    """The pipeline's table, in a container of its own."""
    place = OnAzure(azure)
    pipeline.put_at(place, kind=kind)
    return place


def test_validate_tries_azures_storage_from_here_and_from_an_executor(
    pipeline: Pipeline, azure: AzureServer
) -> None:
    at_azure(pipeline, azure)
    checks = tried_from_both(pipeline)
    assert checks["table"]["verdict"] == "ok", checks["table"]


@pytest.mark.timeout(60, func_only=True)  # an outage would be waited out for 600
@pytest.mark.parametrize(
    ("path", "endpoint", "key", "sentence"),
    [
        ("abfss://nowhere@{host}/lake/events", "", KEY, "there is no container nowhere@"),
        ("", "", ANOTHER_KEY, "the account's key is not the account's"),
        ("", "https://{address}", KEY, "whether the endpoint is http or https"),
        ("abfss://lake@unknown{domain}/lake/events", "", KEY, "there is no container lake@unknown."),
        ("abfss://lake@nobodys.dfs.invalid/lake/events", "none", KEY, "cannot be reached"),
    ],
    ids=("no container", "another key", "https for http", "no account there", "no such host"),
)
def test_what_is_wrong_with_an_azure_table_is_one_sentence_and_soon(
    azure: AzureServer,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    endpoint: str,
    key: str,
    sentence: str,
) -> None:
    words = {"host": DFS_HOST, "domain": DFS_HOST[DFS_HOST.index(".") :], "address": azure.address}
    monkeypatch.setenv(AZURE_VARIABLE, key)
    address = path.format(**words) or f"abfss://{authority_of(CONTAINER)}/lake/events"
    storage = {"credentials": "account_key", "account_key": f"${{env:{AZURE_VARIABLE}}}"}
    if endpoint != "none":
        storage["endpoint"] = endpoint.format(**words) or azure.endpoint
    config = from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": address, "name": "events"},
            "storage": storage,
        }
    )
    check = check_storage(config)
    assert check.verdict == "failed" and sentence in check.detail, check
    assert key not in str(check)


def test_a_run_with_another_accounts_key_ends_at_its_start_with_one_sentence(
    pipeline: Pipeline, azure: AzureServer
) -> None:
    at_azure(pipeline, azure)
    pipeline.environment = {AZURE_VARIABLE: ANOTHER_KEY}
    run = pipeline.start()
    assert run.wait(DEADLINE_S) == EXIT_FAILED, run.text()
    (error,) = [line for line in run.text().splitlines() if " ERROR " in line]
    assert "the account's key is not the account's" in error
    assert "Traceback" not in run.text() and ANOTHER_KEY not in run.text()


def test_a_pipeline_writes_to_azures_storage_and_all_commands_read_it(
    pipeline: Pipeline, azure: AzureServer
) -> None:
    place = at_azure(pipeline, azure)
    said = written_and_read(pipeline)
    assert not place.is_locked()
    assert not any(KEY in one for one in said)


def test_a_driver_that_is_killed_at_azure_is_followed_by_one_that_goes_on_exactly(
    pipeline: Pipeline, azure: AzureServer
) -> None:
    at_azure(pipeline, azure)
    pipeline.produce(2_000)
    first = pipeline.start()
    first.await_commits(1, deadline_s=DEADLINE_S)
    first.kill()
    pipeline.produce(2_000)
    run = pipeline.run_to_end(deadline_s=DEADLINE_S)
    assert run.process.returncode == 0, run.text()
    pipeline.assert_exact(4_000)


def test_upserts_at_azure_are_merged_and_compacted_beside_the_transactions(
    pipeline: Pipeline, azure: AzureServer, spark: SparkSession
) -> None:
    place = at_azure(pipeline, azure, kind="upsert")
    compact(pipeline, spark, place.address, place.settings)
    verdict = pipeline.verify()
    assert verdict["exact"] is not False, verdict
