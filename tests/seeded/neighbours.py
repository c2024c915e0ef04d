"""Rules of neighbouring systems that are assumed: clients, brokers, sinks, Java, Hudi, envelopes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

CLIENTS = "tests/unit/lockstep/migrate/test_clients.py"
ADOPTED = "tests/integration/test_adopted_offsets.py"


def to_the_last_stable_offset(right: Any) -> Any:
    def row(partition: Any, committed: Any, state: Any, view: Any) -> Any:
        found = right(partition, committed, state, view)
        return replace(found, lag=found.readable_lag)

    return row


def of_this_machine(right: Any) -> Any:
    def location(text: str, default_fs: str = "") -> str:
        return f"file://{text.rstrip('/')}" if text.startswith("/") else right(text, default_fs)

    return location


def passing(right: Any) -> Any:
    return lambda config, tally: replace(right(config, tally), verdict="ok")


def within(right: Any) -> Any:
    return dict.fromkeys(right, (-(2**31), 2**31))


BUGS = (
    Bug(
        "a_source_client_that_hangs_is_kept",
        "A source client that hangs counts as a damaged log.",
        Hole.NEIGHBOURS,
        {"participant.source.reading:SourceThread._renews": always(False)},
        of(
            "tests/unit/participant/source/test_stalls.py",
            "test_a_client_that_hangs_while_its_log_goes_on_is_another_one_before_the_run_halts",
        ),
    ),
    Bug(
        "a_control_consumer_that_hangs_is_kept",
        "A consumer of the control topic that hangs is never replaced.",
        Hole.NEIGHBOURS,
        {"control_topic.end_watch:EndWatch.hangs": always(False)},
        of(
            "tests/unit/control_topic/test_end_watch.py",
            "test_a_consumer_that_brings_nothing_while_the_log_goes_on_hangs",
        ),
    ),
    Bug(
        "lag_ends_at_an_open_producer_transaction",
        "Records behind a producer's open transaction are no lag.",
        Hole.NEIGHBOURS,
        {"lockstep.offsets.standing:_row": to_the_last_stable_offset},
        of(
            "tests/unit/lockstep/offsets/test_standing.py",
            "test_what_waits_for_producers_is_named_and_is_lag_but_no_trouble",
        ),
    ),
    Bug(
        "a_topic_policy_ends_the_run",
        "A broker whose policy forbids a setting has no control topic.",
        Hole.NEIGHBOURS,
        {"control_topic.creation:_fewer": always(())},
        of(
            "tests/unit/control_topic/test_creation.py",
            "test_what_is_optional_is_left_out_until_the_broker_creates_it[named]",
        ),
        {"cimpl.KafkaException": "POLICY_VIOLATION"},
    ),
    Bug(
        "numbers_of_a_java_client_are_copied",
        "A number that librdkafka refuses is reported to mean the same.",
        Hole.NEIGHBOURS,
        {"lockstep.migrate.clients:RANGES": within},
        of(CLIENTS, "test_librdkafka_takes_any_numbers_together"),
        {"cimpl.KafkaException": "_INVALID_ARG"},
    ),
    Bug(
        "a_number_of_a_java_client_is_a_number",
        "A Java client's property whose value is not a number ends a translation with a stack trace.",
        Hole.NEIGHBOURS,
        {"lockstep.migrate.sheet:Sheet.follow": lambda _right: lambda sheet, rule, name: rule(sheet, name)},
        of(CLIENTS, "test_a_value_that_is_not_a_number_is_reported_and_ends_nothing"),
        {"builtins.ValueError": "invalid literal for int"},
    ),
    Bug(
        "a_path_without_a_scheme_is_of_this_machine",
        "A table of a cluster's default file system becomes one on each machine's disk.",
        Hole.NEIGHBOURS,
        {"lockstep.migrate.hudi_names:location": of_this_machine},
        of(
            "tests/unit/lockstep/migrate/test_command.py",
            "test_a_path_without_a_file_system_is_where_hadoop_says",
        ),
    ),
    Bug(
        "every_sink_keeps_its_offsets_in_connects_group",
        "Adoption of Tabular's sink reads the offsets of the wrong consumer group.",
        Hole.NEIGHBOURS,
        {"lockstep.migrate.theirs:TABULAR": lambda _right: "none"},
        of(
            ADOPTED,
            "test_icebergs_sink_goes_on_at_the_group_that_its_version_starts_from[control first]",
        ),
    ),
    Bug(
        "files_that_are_gone_begin_anew",
        "Adoption starts a source partition without files at the log's start.",
        Hole.NEIGHBOURS,
        {"lockstep.migrate.theirs:_without_file": always("")},
        of(
            ADOPTED,
            "test_a_source_partition_whose_files_are_gone_goes_on_at_its_groups_offset[hdfs3-moved away]",
        ),
    ),
    Bug(
        "any_hudi_will_do",
        "A run continues with another version of Hudi than the one that was asked for.",
        Hole.NEIGHBOURS,
        {"table.hudi.driver.versions:refuse_others": always(None)},
        of(
            "tests/unit/table/hudi/driver/test_versions.py",
            "test_several_versions_are_refused_with_the_path_of_each",
        ),
    ),
    Bug(
        "any_java_will_do",
        "Spark is started with a Java on which its Hadoop does not run.",
        Hole.NEIGHBOURS,
        {"lockstep.launch.jars:JAVA_MAJOR_MAX": lambda _right: 99},
        of(
            "tests/unit/lockstep/launch/test_jars.py",
            "test_a_java_that_sparks_hadoop_does_not_run_on_is_refused_with_what_to_do",
        ),
    ),
    Bug(
        "a_class_is_defined_by_whoever_comes",
        "Two threads define the same Java class, and one of them fails.",
        Hole.NEIGHBOURS,
        {"table.hudi.driver.compiled:_DEFINING": lambda _right: nullcontext()},
        of("tests/unit/table/hudi/driver/test_compiled.py", "test_several_threads_define_a_class_once"),
    ),
    Bug(
        "a_savepoint_is_no_trouble",
        "A savepoint that keeps the timeline from being archived is never named.",
        Hole.NEIGHBOURS,
        {"lockstep.watch.looks:SAVEPOINT_FORGOTTEN_MS": lambda _right: 2**62},
        of(
            "tests/unit/lockstep/watch/test_looks.py",
            "test_a_savepoint_is_named_once_it_may_be_forgotten_with_what_it_costs_and_what_deletes_it",
        ),
    ),
    Bug(
        "values_without_a_field_are_rows",
        "A value in an envelope, or of another topic, becomes a row of nothing but null.",
        Hole.VALUES,
        {"participant.worker.stages:_rejecting": lambda _right: lambda values, _schema, _record: values},
        of(
            "tests/unit/participant/records/json/test_found_fields.py",
            "test_a_value_without_a_field_of_any_column_is_a_reject_that_names_its_fields",
        ),
    ),
    Bug(
        "connects_payload_is_not_unwrapped",
        "With record.envelope = connect columns are looked for beside the payload.",
        Hole.VALUES,
        {"participant.worker.stages:sources_of": lambda _right: lambda _schema, record: dict(record.columns)},
        of(
            "tests/unit/participant/records/json/test_found_fields.py",
            "test_connects_envelope_is_unwrapped_for_columns_from_anywhere",
        ),
    ),
    Bug(
        "validate_passes_records_that_are_no_rows",
        "A topic whose records are no rows passes `lockstep validate`.",
        Hole.VALUES,
        {"lockstep.validate_records:describe": passing},
        of("tests/unit/lockstep/test_validate_records.py", "test_a_sample_without_a_row_fails"),
    ),
    Bug(
        "a_reason_does_not_name_the_envelope",
        "The reason of a value in an envelope names its fields, and not the setting that reads it.",
        Hole.VALUES,
        {"participant.records.json.found_fields:_hint": always("")},
        of("tests/unit/participant/records/json/test_found_fields.py", "test_a_reason_names_the_envelope"),
    ),
)
