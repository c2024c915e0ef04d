"""Rights that are missing, or taken away: of a broker with Kafka's own authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

DEADLINE_S = 30.0
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Whatever nobody has a rule for is allowed, so that one rule is all that each test adds. Rules are the whole
cluster's: for a broker of one's own."""


@contextmanager
def denied(bootstrap_servers: str, kind: ResourceType, name: str) -> Iterator[None]:
    """Nobody may read it any more."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    pattern, anybody, anywhere = ResourcePatternType.LITERAL, "User:*", "*"
    rule = (kind, name, pattern, anybody, anywhere, AclOperation.READ, AclPermissionType.DENY)
    for future in admin.create_acls([AclBinding(*rule)]).values():
        future.result(DEADLINE_S)
    try:
        yield
    finally:
        for future in admin.delete_acls([AclBindingFilter(*rule)]).values():
            future.result(DEADLINE_S)
