"""Rights on the broker are taken away while the pipeline runs."""

from __future__ import annotations

from confluent_kafka.admin import ResourceType

from tests.faults.acts import halts_after_s, on_a_broker_of_its_own, runs_well
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import await_that
from tests.rights import AUTHORIZER, denied

RECORDS = 2_000


@scenario(
    "Source",
    fault="the right to read the source topic is taken away while the pipeline reads it",
    expected="the run halts at once, names the topic and what to give; with the right given back the next "
    "run loses nothing",
)
def right_to_read_the_source_taken_away(stage: Stage) -> Outcome:
    with on_a_broker_of_its_own(stage, AUTHORIZER, records=RECORDS) as pipeline:
        run = pipeline.start()
        await_that("commit of all", lambda: pipeline.committed() == pipeline.produced, deadline_s=90)
        with denied(pipeline.broker.bootstrap_servers, ResourceType.TOPIC, pipeline.topic):
            halted_s = halts_after_s(run, "does not let this worker", pipeline.topic)
        pipeline.produce(RECORDS)
        runs_well(pipeline)
        assert pipeline.verify()["exact"]
    return Outcome(notes={"halted_after_s": halted_s})


@scenario(
    "Source",
    fault="the pipeline may not read its consumer group",
    expected="the run halts at once, names the group and what to give; with the right given the next run "
    "reads everything",
)
def right_to_read_the_group_missing(stage: Stage) -> Outcome:
    with on_a_broker_of_its_own(stage, AUTHORIZER, records=RECORDS) as pipeline:
        with denied(pipeline.broker.bootstrap_servers, ResourceType.GROUP, pipeline.id):
            said = (f"consumer group {pipeline.id}", "the right to read the group")
            halted_s = halts_after_s(pipeline.start(), *said)
        runs_well(pipeline)
        assert pipeline.verify()["exact"]
    return Outcome(notes={"halted_after_s": halted_s})
