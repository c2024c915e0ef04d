"""How long the parts of a commit took, Hudi's metadata table among them, by either write client."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from control_topic.causes import COMMIT_PARTS, METADATA
from table.hudi.driver import timed
from tests.integration.test_hudi_table import PLAIN, Driver, accept, driver
from tests.integration.test_upserts import Upserts, record, upserts
from tests.merge_model import Change

__all__ = ["driver", "upserts"]
pytestmark = pytest.mark.integration

WITH_METADATA: Mapping[str, str] = {}
BY_SPARK = {"hoodie.table.services.enabled": "true"}
"""Hudi's Java client has no table services."""


def committed(made: Driver, transaction: str) -> Mapping[str, int]:
    """What a commit says of its parts, each no more than the whole."""
    instant = made.begin(transaction)
    commit = made.planned(transaction, instant, 3, made.write(instant, 3))
    started_s = time.monotonic()
    took_ms = made.table.commit(commit, fence=accept)
    whole_ms = (time.monotonic() - started_s) * 1_000
    assert all(ms >= 0 for ms in took_ms.values())
    assert sum(took_ms.values()) <= whole_ms
    sys.stdout.write(f"\n{dict(took_ms)} of {whole_ms:.0f} ms\n")
    return took_ms


@pytest.mark.parametrize(
    ("properties", "client"),
    [(WITH_METADATA, "TimedJavaWriteClient"), (BY_SPARK, "TimedSparkWriteClient")],
    ids=["Java", "Spark"],
)
def test_a_commit_says_how_long_each_of_its_parts_took_and_they_are_no_more_than_the_whole(
    driver: Callable[..., Driver], properties: Mapping[str, str], client: str
) -> None:
    made = driver(properties)
    for transaction in ("t1", "t2"):
        took_ms = committed(made, transaction)
        assert list(took_ms) == list(COMMIT_PARTS)
        assert took_ms[METADATA] > 0 and took_ms["write"] > 0
    assert made.table._session.client.getClass().getSimpleName() == client


def test_a_commit_of_a_table_without_a_metadata_table_says_nothing_of_one(
    driver: Callable[..., Driver],
) -> None:
    made = driver(PLAIN)
    took_ms = committed(made, "t1")
    assert list(took_ms) == [part for part in COMMIT_PARTS if part != METADATA]


def test_a_commit_of_upserts_says_how_long_the_metadata_table_took(
    upserts: Callable[..., Upserts],
) -> None:
    made = upserts()
    instant = made.run([record(Change(key=("a", "k1"), amount=1, ts=1))])
    took_ms = made.table._session.metadata_ms(instant)
    assert took_ms is not None and took_ms > 0
    assert made.table._session.metadata_ms("of another instant") is None


def test_a_hudi_whose_client_has_no_such_method_commits_as_ever_and_the_part_is_missing_and_said_to_be(
    driver: Callable[..., Driver],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As an older or a newer Hudi may name it otherwise: here our source is of such a one."""
    ours = Path(timed.__file__).with_name("jvm") / "TimedJavaWriteClient.java"
    odd = tmp_path / "OddJavaWriteClient.java"
    text = ours.read_text(encoding="utf-8").replace(ours.stem, odd.stem)
    odd.write_text(text.replace("writeToMetadataTable", "noteMetadata"), encoding="utf-8")
    monkeypatch.setattr(timed, "TIMED", {timed.JAVA_CLIENT: str(odd)})
    with caplog.at_level(logging.WARNING):
        made = driver(WITH_METADATA)
    took_ms = committed(made, "t1")
    assert list(took_ms) == [part for part in COMMIT_PARTS if part != METADATA]
    assert made.table._session.client.getClass().getSimpleName() == "HoodieJavaWriteClient"
    (said,) = [one.getMessage() for one in caplog.records if one.name == timed.__name__]
    assert said.startswith(timed.MISFIT) and "has no method named" in said and "\n" not in said
