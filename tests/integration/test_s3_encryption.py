"""A bucket that takes nothing which does not say how it is to be encrypted, as policies of many buckets on
AWS want it: Python's puts, Hadoop's and the table lock's all say it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from lockstep.stores.local import S3Server
from table.errors import Refused, Unavailable
from table.store.location import store_at
from table.store.objects.requests import Request
from table.store.objects.settings import MIB, Encryption
from table.store.probe import probe
from tests.integration import test_s3_table
from tests.integration.test_s3_table import Place, S3Driver
from tests.s3_proxy import PUTS, S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
opened = test_s3_table.opened

HEADER, ALGORITHM = "x-amz-server-side-encryption", "AES256"


@pytest.fixture
def place(s3: S3Server) -> Iterator[Place]:
    with S3Proxy(s3.port) as proxy:
        made = Place(s3, proxy)
        proxy.insists[HEADER] = ALGORITHM
        made.settings = replace(made.settings, encryption=Encryption(algorithm=ALGORITHM))
        made.direct = store_at(made.path, settings=made.settings)  # the test's worker, too
        yield made


def test_a_table_is_written_where_every_put_must_say_how_it_is_encrypted(
    opened: Callable[..., S3Driver], place: Place
) -> None:
    driver = opened()
    driver.run("t1", 3)
    driver.run("t2", 2)
    with_parts = driver.store.sink("a/large")
    with_parts.write(bytes(9 * MIB))
    with_parts.close()
    assert driver.store.delete("a/large")
    assert {one for one in PUTS if place.proxy.counts[one]} == {*PUTS}, place.proxy.counts
    assert not place.proxy.unsaid
    newest = driver.table.newest()
    assert newest is not None and newest.transaction == "t2"


def test_the_lock_names_a_key_of_the_key_service_which_java_sends_by_https_only(
    opened: Callable[..., S3Driver], place: Place
) -> None:
    encryption = Encryption(algorithm="aws:kms", kms_key="our key")
    place.settings = replace(place.settings, encryption=encryption)
    with pytest.raises(Refused, match="HTTPS must be used"):
        opened()
    assert not place.proxy.unsaid


def test_whoever_says_nothing_of_it_is_told_before_anything_is_written(
    opened: Callable[..., S3Driver], place: Place
) -> None:
    place.settings = replace(place.settings, encryption=None)
    failed = {one.what: one.why_not for one in probe(place.path, place.settings) if one.why_not}
    assert "s3:PutObject" in failed["write a file"], failed
    with pytest.raises((Refused, Unavailable)):
        opened()
    assert place.proxy.counts[Request.PART] == 0
