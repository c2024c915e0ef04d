"""Folders of times, as a table's own key generator makes them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from table.hudi.files.folders import Folders
from table.hudi.files.timed import UNITS, Timed, check_timed
from table.hudi.generators import UnknownGenerator, fields_of_kinds, timed_of
from table.hudi.layout import HudiLayout
from table.schema import SchemaError

PREFIX = "hoodie.keygen.timebased."
MILLIS = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd", "timezone": "UTC"}
TEXTS = {**MILLIS, "timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd HH:mm:ss"}
INPUT = "input.dateformat"


def timed(said: dict[str, str], *fields: str, **more: str) -> Timed:
    kinds = dict.fromkeys(fields or ("ts",), "TIMESTAMP")
    found = timed_of({**{f"{PREFIX}{name}": value for name, value in said.items()}, **more}, kinds)
    assert found is not None
    return found


def folders(made: Timed, values: pa.Array, **layout: Any) -> tuple[list[str], dict[int, str]]:
    """Of the table partitions `region`, then `ts`."""
    table = pa.table({"region": pa.array(["eu"] * len(values)), "ts": values})
    kept = HudiLayout(
        path="/t",
        key_fields=("id",),
        partition_fields=("region", "ts"),
        kafka_columns=False,
        target_file_bytes=1,
        ddl="",
        timed=made.encoded(),
        **layout,
    )
    found, bad = Folders(kept).of(table)
    return found.to_pylist(), dict(bad)


def test_a_folder_is_the_time_of_a_number_by_the_pattern_and_null_is_the_first_day() -> None:
    values = pa.array([1_795_737_600_000, None, -1, 1_795_737_600_000], pa.int64())
    wanted = ["eu/2026/11/27", "eu/1970/01/01", "eu/1969/12/31", "eu/2026/11/27"]
    assert folders(timed(MILLIS), values) == (wanted, {})
    hive = [f"region=eu/ts={one[3:]}" for one in wanted]
    assert folders(timed(MILLIS), values, hive_style=True) == (hive, {})
    coded = [f"region=eu/ts={one[3:].replace('/', '%2F')}" for one in wanted]
    assert folders(timed(MILLIS), values, hive_style=True, url_encode=True) == (coded, {})


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_are_divided_as_java_does_it(unit: str) -> None:
    """Towards zero: the last microsecond of 1969 is a millisecond of 1970."""
    said = {**MILLIS, "timestamp.type": "SCALAR", "timestamp.scalar.time.unit": unit.lower()}
    found, bad = folders(timed(said), pa.array([-1, 0], pa.int32()))
    early = "1970/01/01" if unit in ("MICROSECONDS", "NANOSECONDS") else "1969/12/31"
    assert (found, bad) == ([f"eu/{early}", "eu/1970/01/01"], {})


def test_days_of_a_date_are_what_its_unit_counts() -> None:
    said = {**MILLIS, "timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "DAYS"}
    dates = pa.array([date(2026, 3, 29), None], pa.date32())
    assert folders(timed(said), dates) == (["eu/2026/03/29", "eu/1970/01/02"], {})  # null is the number 1


def test_a_folder_is_by_the_clock_of_the_zone() -> None:
    before, after = 1_792_879_199_000, 1_792_879_200_000  # 24 October 2026, 21:59:59 and 22:00 in UTC
    for zone, ends in (("Europe/Berlin", ("24", "25")), ("UTC", ("24", "24")), ("GMT+8:00", ("25", "25"))):
        said = {**MILLIS, "timezone": zone, "output.dateformat": "dd"}
        found, _ = folders(timed(said), pa.array([before, after], pa.int64()))
        assert [one.removeprefix("eu/") for one in found] == list(ends)


def test_a_text_is_read_and_spelled_again_and_one_that_is_no_time_has_no_folder() -> None:
    values = pa.array(["2026-03-29 02:30:00", None, "2026-02-30 00:00:00", "", "0000-01-01 00:00:00"])
    for said in (TEXTS, {**TEXTS, "timezone": "Europe/Berlin"}, {**TEXTS, "timezone": ""}):
        found, bad = folders(timed(said), values)
        assert found[:2] == ["eu/2026/03/29", "eu/1970/01/01"]
        assert list(bad) == [2, 3, 4] and "field ts: it is no time" in bad[2]
    elsewhere = {one: said for one, said in TEXTS.items() if one != "timezone"}
    elsewhere |= {"input.timezone": "UTC", "output.timezone": "Asia/Tokyo", "output.dateformat": "yyyyMMddHH"}
    assert folders(timed(elsewhere), values[:2])[0] == ["eu/2026032911", "eu/1970010109"]


def test_null_among_texts_is_read_as_hudi_writes_it_for_itself() -> None:
    said = {**TEXTS, "timezone": "America/New_York", "output.dateformat": "yyyyMMddHH"}
    assert timed(said).of_null == "1969123119"
    assert timed({**said, INPUT: "yyyy-MM-dd"}).of_null == "1969123100"


def test_numbers_out_of_all_years_have_no_folder() -> None:
    values = pa.array([2**62, -(2**62), 253_402_300_799_999, 253_402_300_800_000], pa.int64())
    _, bad = folders(timed({**MILLIS, "timezone": "Europe/Berlin"}), values)
    assert list(bad) == [0, 1, 2, 3]  # the third is a time of the year 10000 in Berlin
    assert list(folders(timed(MILLIS), values)[1]) == [0, 1, 3]


def test_a_letter_of_jodas_years_is_ours() -> None:
    said = {**MILLIS, "output.dateformat": "'Year='YYYY"}
    with pytest.raises(UnknownGenerator, match="no folder is called that"):
        timed({**said, "output.dateformat": "/YYYY"})
    assert timed({**said, "output.dateformat": "'Y'YYYY"}).spelled == "'Y'yyyy"


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"timestamp.type": ""}, r"do not say .*timestamp\.type.* in table\.hudi"),
        ({"output.dateformat": ""}, "do not say .*output.dateformat"),
        ({"timestamp.type": "LUNAR"}, "is LUNAR, which is none of EPOCHMILLISECONDS"),
        ({"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "WEEKS"}, "unit is WEEKS"),
        ({"timezone": ""}, "by the clock of whichever machine writes"),
        ({"timezone": "EST"}, "time zone is EST; known are"),
        ({"timezone": "GMT+5:30"}, r"time zone is GMT\+5:30; known are"),
        ({"timezone": "GMT+15"}, r"time zone is GMT\+15"),
        ({"timezone": "Mars/Olympus"}, "time zone is Mars/Olympus"),
        ({"output.dateformat": "yyyy/MM/dd HH:mm"}, "no folder is called that"),
        ({"output.dateformat": "yyyy//MM"}, "no folder is called that"),
        ({"output.dateformat": ".yyyy"}, "no folder is called that"),
        ({"output.dateformat": "yy"}, "output.dateformat is yy; wanted is one of yyyy"),
        ({"output.dateformat": "yyyy-MM-dd'T'HHZ"}, "output.dateformat is .*; wanted is one of yyyy"),
        ({"timestamp.type": "DATE_STRING"}, "input.dateformat is not one pattern"),
        ({"timestamp.type": "MIXED", INPUT: "yyyy-MM-dd,yyyyMMdd"}, "input.dateformat is not one pattern"),
        ({"timestamp.type": "DATE_STRING", INPUT: "yyyy-MM"}, "does not say a day"),
        ({"timestamp.type": "DATE_STRING", INPUT: "yyyy-MM-dd'T'HH:mm:ssZ"}, "wanted is one of yyyy"),
    ],
)
def test_what_cannot_be_made_as_hudi_makes_it_is_refused(changes: dict[str, str], phrase: str) -> None:
    with pytest.raises(UnknownGenerator, match=phrase):
        timed({**MILLIS, **changes})


def test_texts_by_the_clock_of_another_zone_than_folders_are_refused_but_for_utc() -> None:
    two = {one: said for one, said in TEXTS.items() if one != "timezone"} | {"output.timezone": "UTC"}
    for read in ("Europe/Berlin", ""):
        with pytest.raises(UnknownGenerator, match="known is UTC for the first, or one zone for both"):
            timed({**two, "input.timezone": read})


def test_what_a_tables_properties_do_not_say_the_configuration_may_and_nothing_else() -> None:
    own = {f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS", f"{PREFIX}output.dateformat": "yyyy"}
    kinds = {"ts": "TIMESTAMP"}
    with pytest.raises(UnknownGenerator, match="whichever machine writes"):
        timed_of(own, kinds)
    found = timed_of(own, kinds, {f"{PREFIX}timezone": "UTC"})
    assert found is not None and found.zone == "UTC"
    with pytest.raises(UnknownGenerator, match=r"output\.dateformat is yyyy, and MM in table\.hudi"):
        timed_of(own, kinds, {f"{PREFIX}output.dateformat": "MM"})
    with pytest.raises(UnknownGenerator, match=r"makes folders of no time: take .*timezone out"):
        timed_of({}, {"day": "SIMPLE"}, {f"{PREFIX}timezone": "UTC"})


def test_a_parser_of_somebodys_own_and_kinds_that_there_are_not_are_refused() -> None:
    with pytest.raises(UnknownGenerator, match="a class of somebody's own"):
        timed(MILLIS, **{"hoodie.keygen.datetime.parser.class": "com.example.Parser"})
    for written, generator in ((["ts:HASH"], "CUSTOM"), (["ts"], "CUSTOM"), (["ts:SIMPLE:x"], "SIMPLE")):
        with pytest.raises(UnknownGenerator, match="is neither ts:SIMPLE nor ts:TIMESTAMP"):
            fields_of_kinds(written, generator)
    with pytest.raises(UnknownGenerator, match="known are SIMPLE"):
        fields_of_kinds(["ts"], "com.example.Generator")
    assert fields_of_kinds(["a:simple", "b"], "COMPLEX") == {"a": "SIMPLE", "b": "SIMPLE"}
    assert fields_of_kinds(["ts"], "TIMESTAMP") == {"ts": "TIMESTAMP"}
    assert timed_of({}, {"a": "SIMPLE"}) is None


@pytest.mark.parametrize(
    ("said", "kind", "is_taken"),
    [
        (MILLIS, pa.int64(), True),
        (MILLIS, pa.int32(), True),
        (MILLIS, pa.date32(), True),
        (MILLIS, pa.string(), False),
        (MILLIS, pa.timestamp("us", tz="UTC"), False),
        (MILLIS, pa.decimal128(10, 0), False),
        (MILLIS, pa.float64(), False),
        (TEXTS, pa.string(), True),
        (TEXTS, pa.int64(), False),
        (TEXTS, pa.date32(), False),
    ],
    ids=str,
)
def test_a_column_that_hudi_makes_no_folder_of_is_refused(
    said: dict[str, str], kind: pa.DataType, is_taken: bool
) -> None:
    if is_taken:
        check_timed(timed(said), pa.field("ts", kind))
        return
    with pytest.raises(SchemaError, match=r"column ts: it is .* folders are made of"):
        check_timed(timed(said), pa.field("ts", kind))


def test_what_workers_are_told_is_what_the_driver_found() -> None:
    made = timed(TEXTS, "ts", "seen")
    assert Timed.of(made.encoded()) == made and made.fields == ("ts", "seen")
