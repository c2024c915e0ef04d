"""One member of a consumer group, as a worker has it: orders come by line, what happens goes out by line.

`python -m tests.conformance.member_process BOOTSTRAP TOPIC INSTANCE SESSION_MS METADATA_REFRESH_MS`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from control_topic.messages import SourcePartition
from participant.source.membership import Membership, MembershipCallbacks


def say(what: str, content: object = None) -> None:
    sys.stdout.write(json.dumps([what, content]) + "\n")
    sys.stdout.flush()


def main() -> None:
    servers, topic, instance, session_ms, refresh_ms = sys.argv[1:]

    def assigned(offsets: Mapping[SourcePartition, int | None]) -> None:
        say("assigned", sorted(partition.number for partition in offsets))

    def revoked(partitions: Sequence[SourcePartition]) -> None:
        say("revoked", sorted(partition.number for partition in partitions))

    membership = Membership(
        kafka={"bootstrap.servers": servers, "topic.metadata.refresh.interval.ms": refresh_ms},
        group=f"group-{topic}",
        instance=instance,
        topics=[topic],
        session_timeout_ms=int(session_ms),
        callbacks=MembershipCallbacks(
            committed=lambda: {},
            assigned=assigned,
            revoked=revoked,
            fenced=lambda why: say("fenced", why),
            failed=lambda why: say("failed", why),
            refused=lambda why: say("refused", why),
        ),
    )
    membership.start()
    for line in sys.stdin:
        order, _, number = line.strip().partition(" ")
        if order == "prove":
            place = SourcePartition(topic, int(number))
            membership.prove(place, 0, lambda ok, _why: say("proved", ok))
        elif order == "leave":
            say("left", membership.leave(20.0))
            return


if __name__ == "__main__":
    main()
