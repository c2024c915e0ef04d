"""Roles that are assumed, on a server that gives them out as AWS does: SeaweedFS's own token service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lockstep.stores.local import S3Server, role_arn, secret_of
from table.store.location import store_at
from table.store.objects.settings import MIB, AssumedRole, Credentials, ObjectSettings, ProviderChain
from table.store.probe import probe
from tests.s3_fixture import ROLE, new_place, without
from tests.s3_proxy import S3Proxy

pytestmark = pytest.mark.xdist_group("s3")

MAX = 1 << 20
ASKS = "reader"
"""Who may only read, and assume the role, which may write."""
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE")


@pytest.fixture(autouse=True)
def who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """By variables of AWS's, none of which says a region."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ASKS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret_of(ASKS))
    for name in REGION_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3.port) as running:
        yield running


def failures(settings: ObjectSettings) -> dict[str, str]:
    return {one.what: one.why_not for one in probe(new_place(), settings) if one.why_not}


def by(s3: S3Server, credentials: Credentials) -> ObjectSettings:
    return replace(s3.settings, credentials=credentials)


def test_a_role_may_what_who_assumes_it_may_not_and_no_region_need_be_said_but_the_buckets(
    s3: S3Server,
) -> None:
    assert "s3:PutObject" in failures(by(s3, ProviderChain()))["write a file"]
    role = AssumedRole(arn=role_arn(ROLE), endpoint=s3.endpoint)
    assert failures(by(s3, role)) == {}
    assert failures(replace(by(s3, role), region="")) == {}


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ("s3:GetObject", "read it"),
        ("s3:PutObject", "write a file"),
        ("s3:DeleteObject", "delete it"),
        ("s3:ListBucket", "list it"),
    ],
)
def test_the_one_action_that_a_policy_leaves_out_is_named(s3: S3Server, action: str, what: str) -> None:
    """By a policy of the server's own. It knows no action of their own for aborting and listing uploads:
    `tests/integration/test_probe.py` has those.
    """
    found = failures(by(s3, AssumedRole(arn=role_arn(without(action)), endpoint=s3.endpoint)))
    assert action in found.get(what, ""), found


def test_a_role_that_cannot_be_assumed_is_named_with_the_reason(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobodys = AssumedRole(arn=role_arn("nobodys"), endpoint=s3.endpoint)
    (sentence,) = failures(by(s3, nobodys)).values()
    assert role_arn("nobodys") in sentence and "sts:AssumeRole" in sentence, sentence
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    (sentence,) = failures(by(s3, AssumedRole(arn=role_arn(ROLE), endpoint=s3.endpoint))).values()
    assert f"the role {role_arn(ROLE)} cannot be assumed" in sentence, sentence
    (sentence,) = failures(by(s3, AssumedRole(arn=role_arn(ROLE), endpoint="http://127.0.0.1:9"))).values()
    assert role_arn(ROLE) in sentence and "http://127.0.0.1:9" in sentence, sentence


def test_a_session_that_is_taken_back_is_followed_by_the_next_at_once(s3: S3Server, proxy: S3Proxy) -> None:
    """Of a store that is in use, in requests of both libraries; so it is when one has ended."""
    role = AssumedRole(arn=role_arn(ROLE), endpoint=s3.endpoint)
    settings = replace(by(s3, role), endpoint=proxy.endpoint)
    store = store_at(new_place(), settings=settings)
    store.put("there", b"1")
    assert [*store.uploads()] == []
    before = {*proxy.asked_by}
    assert len(before) == 2, "each library's"
    for one in before:
        proxy.refused[one] = (400, "ExpiredToken")
    assert store.read("there", bytes_max=MAX) == b"1"
    assert [*store.uploads()] == []
    with contextlib.closing(store.sink("large")) as sink:
        sink.write(bytes(9 * MIB))
    assert proxy.asked_by.keys() > before
