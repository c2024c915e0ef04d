"""Rights on the broker are taken away while the pipeline runs."""

from __future__ import annotations

from confluent_kafka.admin import ResourceType

from lockstep.errors import EXIT_HALTED
from tests.faults.acts import ends_with, on_a_broker_of_its_own
from tests.faults.commits import wall_ms
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
            began_ms = wall_ms()
            ends_with(run, EXIT_HALTED, "does not let this worker", pipeline.topic)
            halted_s = (wall_ms() - began_ms) / 1_000
        pipeline.produce(RECORDS)
        assert pipeline.run_to_end().process.returncode == 0
        assert pipeline.verify()["exact"]
    return Outcome(notes={"halted_after_s": round(halted_s, 1)})


@scenario(
    "Source",
    fault="the pipeline may not read its consumer group",
    expected="the run halts at once, names the group and what to give; with the right given the next run "
    "reads everything",
)
def right_to_read_the_group_missing(stage: Stage) -> Outcome:
    with on_a_broker_of_its_own(stage, AUTHORIZER, records=RECORDS) as pipeline:
        with denied(pipeline.broker.bootstrap_servers, ResourceType.GROUP, pipeline.id):
            began_ms = wall_ms()
            run = pipeline.start()
            ends_with(run, EXIT_HALTED, f"consumer group {pipeline.id}", "the right to read the group")
            halted_s = (wall_ms() - began_ms) / 1_000
        assert pipeline.run_to_end().process.returncode == 0
        assert pipeline.verify()["exact"]
    return Outcome(notes={"halted_after_s": round(halted_s, 1)})
