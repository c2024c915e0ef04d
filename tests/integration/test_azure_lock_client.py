"""The lock in Azure's storage obeys what the one on S3 obeys: the same tests, on Azurite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pyspark.sql import SparkSession

from table.store.location import AZURE
from tests.azure.server import AzureServer
from tests.integration.test_lock_client import (
    Locks,
    test_a_guardian_sees_each_lease_that_the_jvm_holds_from_its_taking_on,
    test_a_lease_that_is_over_is_taken_and_one_that_is_renewed_is_not,
    test_a_renewal_whose_answer_was_lost_is_known_and_the_next_goes_on_from_it,
    test_a_request_is_not_repeated_behind_the_clients_back,
    test_a_server_that_keeps_conditions_is_told_so_and_nothing_is_left_of_the_question,
    test_a_write_that_lands_late_keeps_its_holder_from_nothing,
    test_of_racers_one_has_the_lock_and_the_next_when_it_is_given_back,
    test_what_another_has_had_since_is_taken_where_he_gave_it_back,
    test_who_cannot_give_the_lock_back_is_told_so,
    test_who_lost_a_race_is_told_so_though_the_answer_was_lost,
    test_who_took_the_lock_holds_it_though_the_answer_was_lost,
)
from tests.s3_proxy import S3Proxy

__all__ = [
    "test_a_guardian_sees_each_lease_that_the_jvm_holds_from_its_taking_on",
    "test_a_lease_that_is_over_is_taken_and_one_that_is_renewed_is_not",
    "test_a_renewal_whose_answer_was_lost_is_known_and_the_next_goes_on_from_it",
    "test_a_request_is_not_repeated_behind_the_clients_back",
    "test_a_server_that_keeps_conditions_is_told_so_and_nothing_is_left_of_the_question",
    "test_a_write_that_lands_late_keeps_its_holder_from_nothing",
    "test_of_racers_one_has_the_lock_and_the_next_when_it_is_given_back",
    "test_what_another_has_had_since_is_taken_where_he_gave_it_back",
    "test_who_cannot_give_the_lock_back_is_told_so",
    "test_who_lost_a_race_is_told_so_though_the_answer_was_lost",
    "test_who_took_the_lock_holds_it_though_the_answer_was_lost",
]

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("azure")]


@pytest.fixture
def locks(spark: SparkSession, azure: AzureServer) -> Iterator[Locks]:
    with S3Proxy(azure.port) as proxy, ExitStack() as opened:
        yield Locks(spark, azure, proxy, opened, AZURE)
        assert not proxy.unstruck()
