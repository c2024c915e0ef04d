"""Another sink's connector, and what `lockstep migrate --adopt-offsets` makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.harness import Pipeline

S3 = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "s3.bucket.name": "nobody-has-this",
    "flush.size": "3",
}


def connector(pipeline: Pipeline, config: Mapping[str, str], *, name: str = "") -> Path:
    """Their file, as `POST /connectors` takes it."""
    path = pipeline.folder / "connector.json"
    whole = {"topics": pipeline.topic, **config}
    path.write_text(json.dumps({"name": name or f"x-{pipeline.topic}", "config": whole}))
    return path


def adopt(pipeline: Pipeline, source: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, what a program is told, and what stands on stderr."""
    theirs = ("--from", str(source), "--adopt-offsets", "--output", "json")
    done = pipeline.command("migrate", *theirs, *arguments, deadline_s=300)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def after(told: Mapping[str, Any]) -> dict[int, int]:
    return {row["partition"]: row["after"] for row in told["partitions"]}


def commit_offsets(pipeline: Pipeline, group: str, offsets: Mapping[int, int]) -> None:
    """Commit a group's offsets by source partition, as a sink that is stopped has left them."""
    consumer = Consumer({**pipeline.kafka, "group.id": group, "enable.auto.commit": False})
    places = [TopicPartition(pipeline.topic, number, offset) for number, offset in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
