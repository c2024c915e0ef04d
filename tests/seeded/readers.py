"""Files and names by which other engines do not find rows."""

from __future__ import annotations

import re
from typing import Any

from tests.seeded.base import Bug, Wrong, always, of
from tests.seeded.holes import Hole

FLOATS = "tests/unit/table/hudi/files/test_float_columns.py"
PREDICATES = "tests/unit/table/hudi/files/test_predicates.py"


def without(exceptions: str) -> Wrong:
    """The columns with NaN, or with zeros, are not found."""

    def wrong(right: Any) -> Any:
        def find(piece: Any) -> Any:
            found = right(piece)
            rest = {"nan": found.nan, "zero": found.zero, exceptions: frozenset()}
            return type(found)(**rest)

        return find

    return wrong


BUGS = (
    Bug(
        "verify_trusts_a_reader_with_any_column",
        "Every table is verified by the hudi reader, which ends in a panic at a TIMESTAMP_NTZ.",
        Hole.READERS,
        {"table.hudi.census.base_rows:WholeReader._names_unknown_to_rust": always(None)},
        of(
            "tests/unit/table/hudi/census/test_base_rows.py",
            "test_a_group_has_the_rows_of_its_newest_complete_file_and_one_that_was_replaced_has_none",
        ),
    ),
    Bug(
        "statistics_leave_nan_out",
        "A FLOAT or DOUBLE column with NaN has statistics, by which engines skip its rows.",
        Hole.READERS,
        {"table.hudi.files.encoding:find_exceptions": without("nan")},
        (
            *of(FLOATS, "test_a_column_with_nan_has_no_statistics"),
            *of(PREDICATES, "test_every_predicate_selects_the_same_rows_with_and_without_pushdown"),
        ),
    ),
    Bug(
        "a_dictionary_holds_zeros",
        "A FLOAT or DOUBLE column with zeros has a dictionary, in which Spark does not find the other zero.",
        Hole.READERS,
        {"table.hudi.files.encoding:find_exceptions": without("zero")},
        of(FLOATS, "test_a_column_with_a_zero_has_no_dictionary_and_keeps_its_statistics"),
    ),
    Bug(
        "a_file_with_statistics_takes_nan",
        "A file that was begun with statistics and dictionaries takes rows with NaN and zeros.",
        Hole.READERS,
        {"table.hudi.files.base_writer:TransactionWriter._begins_another": always(False)},
        of(FLOATS, "test_a_row_group_with_nan_or_a_zero_begins_another_file"),
    ),
    Bug(
        "column_statistics_are_kept",
        "Hudi's column statistics are accepted, by which Spark skips files that hold matching rows.",
        Hole.READERS,
        {
            "table.hudi.properties:lossy_index": always(None),
            "table.hudi.definition:lossy_index": always(None),
        },
        (
            *of("tests/unit/lockstep/config/test_config.py", "test_an_index_that_loses_rows_is_refused"),
            *of(
                "tests/unit/table/hudi/test_definition.py",
                "test_a_table_with_an_index_that_loses_rows_is_refused",
            ),
        ),
    ),
    Bug(
        "the_shells_locale_is_the_jvms",
        "Spark starts in a locale in which a JVM cannot spell every table partition's folder.",
        Hole.READERS,
        {"lockstep.launch.submit:UTF_8_LOCALE": lambda _right: "POSIX"},
        of(
            "tests/unit/lockstep/launch/test_submit.py",
            "test_spark_starts_in_a_utf_8_locale_whatever_the_locale_of_the_shell",
        ),
    ),
    Bug(
        "any_encoding_of_file_names_will_do",
        "A run continues in a JVM that finds no file in a folder whose name is not ASCII.",
        Hole.READERS,
        {"table.hudi.driver.encodings:refuse_others": always(None)},
        of(
            "tests/unit/table/hudi/driver/test_encodings.py",
            "test_a_jvm_with_another_encoding_is_refused_where_table_partitions_are_folders_of_the_machine",
        ),
    ),
    Bug(
        "hudis_dictionaries_hold_zeros",
        "Hudi's writer makes dictionaries of FLOAT and DOUBLE columns, in which Spark does not find a zero.",
        Hole.READERS,
        {"table.hudi.upkeep.dictionaries:FLOATS": lambda _right: re.compile("none")},
        of(
            "tests/unit/table/hudi/upkeep/test_dictionaries.py",
            "test_files_of_tables_with_float_columns_have_no_dictionaries_and_others_have",
        ),
    ),
    Bug(
        "values_in_a_metastore_stay_encoded",
        "A metastore has partition values as folders spell them, and not as rows hold them.",
        Hole.READERS,
        {"table.hudi.driver.hive_sync:is_true": always(False)},
        of("tests/integration/test_hive_values.py", "test_a_metastore_has_values_as_rows_hold_them"),
    ),
    Bug(
        "copies_mix_row_groups_with_and_without_statistics",
        "Row groups with and without statistics of a column are copied into one file.",
        Hole.READERS,
        {"table.hudi.upkeep.counted:_ranges": always((frozenset(), frozenset()))},
        of(
            "tests/unit/table/hudi/upkeep/test_counted.py",
            "test_files_of_which_some_have_statistics_of_a_column_and_others_have_none_are_not_copied",
        ),
    ),
    Bug(
        "columns_are_taken_by_names_whatever_their_ids",
        "A run accepts a table with columns renamed or dropped by id: readers see other columns' data.",
        Hole.READERS,
        {"table.hudi.reader.schema_history:renamed_or_dropped": always("")},
        of(
            "tests/unit/table/hudi/reader/test_schema_history.py",
            "test_the_newest_file_of_the_folder_counts_and_a_table_without_one_is_well",
        ),
    ),
)
