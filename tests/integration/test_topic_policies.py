"""A broker whose policy forbids settings or sizes of topics that are created."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from control_topic.creation import WantedTopic, create_topic
from control_topic.errors import ControlTopicRefused
from control_topic.topic import SETTINGS, ControlTopic
from lockstep.brokers.dead_letter_topics import DeadLetterTopics
from lockstep.brokers.kept_topics import KeptTopics
from lockstep.brokers.local import Broker
from lockstep.errors import Failed
from lockstep.launch.jars import KAFKA, resolve

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

POLICY = """
import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

public class ByName implements CreateTopicPolicy {
    public void configure(Map<String, ?> configs) {}
    public void close() {}
    public void validate(RequestMetadata asked) {
        Map<String, String> given = asked.configs();
        String topic = asked.topic(), why = null;
        if (topic.startsWith("compression") && given.containsKey("compression.type"))
            why = "Config 'compression.type' may only be 'producer'";
        if (topic.startsWith("unnamed") && given.containsKey("message.timestamp.type"))
            why = "Two of your properties are not permitted here";
        if (topic.startsWith("size")
                && Long.parseLong(given.getOrDefault("max.message.bytes", "0")) > 8388608L)
            why = "Config 'max.message.bytes' must not exceed 8388608";
        if (topic.startsWith("never")) why = "Topics are created by the platform team";
        if (why != null) throw new PolicyViolationException(why);
    }
}
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with that policy, which is compiled as an operator's would be."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no javac, with which a broker's policy is compiled")
    classes = tmp_path_factory.mktemp("policy")
    (classes / "ByName.java").write_text(POLICY)
    jars = os.pathsep.join(map(str, resolve(KAFKA)))
    subprocess.run([javac, "-cp", jars, "-d", classes, classes / "ByName.java"], check=True)

    class WithPolicy(Broker):
        def _prepare(self) -> None:
            super()._prepare()
            self._classpath = os.pathsep.join([str(classes), self._classpath])

    properties = {"create.topic.policy.class.name": "ByName"}
    with WithPolicy(classes / "broker", heap_mb=384, properties=properties) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("topic", "left_out"),
    [
        ("free", ()),
        ("compression", ("compression.type",)),
        ("unnamed", ("cleanup.policy", "retention.ms", "message.timestamp.type", "compression.type")),
    ],
)
def test_a_control_topic_is_created_without_what_the_policy_forbids(
    servers: str, topic: str, left_out: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    control = ControlTopic({"bootstrap.servers": servers}, topic)
    assert control.create(validate_only=True).left_out == left_out
    assert not control.describe().exists, "asked, and not created"
    control.ensure(timeout_s=60)
    assert control.describe().partitions == 1
    said = f"Created the control topic {topic} without {', '.join(left_out)}, which the broker refused"
    assert (said in caplog.text) is bool(left_out)
    control.ensure(timeout_s=60)


def test_a_policy_that_allows_no_topic_is_answered_by_the_command_that_creates_it(servers: str) -> None:
    control = ControlTopic({"bootstrap.servers": servers}, "never")
    for ask in (lambda: control.ensure(timeout_s=60), lambda: control.create(validate_only=True)):
        with pytest.raises(ControlTopicRefused) as caught:
            ask()
        said = str(caught.value)
        assert "Topics are created by the platform team. Have it created: kafka-topics.sh" in said
        assert f"--bootstrap-server {servers} --create --topic never --partitions 1" in said
        assert all(f"--config {name}={value}" in said for name, value in SETTINGS.items())


def test_dead_letter_topics_are_created_as_large_as_the_policy_allows(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = {"bootstrap.servers": servers}
    source = WantedTopic(topic="source", partitions=1, replicas=1, required={"max.message.bytes": "8388608"})
    create_topic(AdminClient(kafka), source, timeout_s=30)
    letters = DeadLetterTopics(kafka, ["size.dlq"], ["source"], partitions=1)
    assert letters.try_to_make("size.dlq").left_out == ("max.message.bytes",)
    assert letters.look().missing == ("size.dlq",)
    letters.ensure(timeout_s=60)
    assert "Created the topic size.dlq without max.message.bytes" in caplog.text
    assert "a larger record that is rejected halts the run" in caplog.text
    never = DeadLetterTopics(kafka, ["never.dlq"], ["source"], partitions=1)
    with pytest.raises(Failed, match=r"platform team; have it created: kafka-topics\.sh"):
        never.ensure(timeout_s=60)


def test_a_setting_without_which_a_topic_is_of_no_use_is_not_left_out(servers: str) -> None:
    topics = KeptTopics({"bootstrap.servers": servers}, lambda topics, what, why: Failed(f"{topics}: {why}"))
    with pytest.raises(Failed, match=r"compression\.marks: Config"):
        topics.make(
            ["compression.marks"], partitions=1, required={"compression.type": "zstd"}, deadline_s=0.0
        )
