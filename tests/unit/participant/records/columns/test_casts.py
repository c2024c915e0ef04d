"""Nothing is lost when a type is made of another one, and what does not fit is found value by value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Context, Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from participant.records.columns.casts import CASTS, MICROS, cast, day, moment, route
from table.schema import LOCAL_MICROS, UTC_MICROS, parse_ddl

BAD = object()
EXACT = Context(prec=200)


def kind(ddl: str) -> pa.DataType:
    return parse_ddl(f"c {ddl}").field(0).type


def of(given: str, wanted: str, value: Any) -> Any:
    made, misfits = cast(pa.array([None, value, None], kind(given)), kind(wanted))
    made.validate(full=True)
    assert made.type == kind(wanted)
    assert misfits.tolist() in ([False, False, False], [False, True, False])
    assert made[0].as_py() is None and made[2].as_py() is None
    return BAD if misfits[1] else made[1].as_py()


@pytest.mark.parametrize(
    ("given", "wanted", "value", "due"),
    [
        ("BINARY", "STRING", "é".encode(), "é"),
        ("BINARY", "STRING", b"\xff", BAD),
        ("STRING", "BOOLEAN", "true", True),
        ("STRING", "BOOLEAN", "True", BAD),
        ("STRING", "INT", "-2147483648", -(2**31)),
        ("STRING", "INT", "2147483648", BAD),
        ("STRING", "BIGINT", "9223372036854775807", 2**63 - 1),
        ("STRING", "BIGINT", "9223372036854775808", BAD),
        ("STRING", "BIGINT", "007", BAD),
        ("STRING", "BIGINT", "1.0", BAD),
        ("STRING", "BIGINT", " 1", BAD),
        ("STRING", "BIGINT", "1\n", BAD),
        ("STRING", "BIGINT", "", BAD),
        ("STRING", "DOUBLE", "1e3", 1000.0),
        ("STRING", "DOUBLE", "1e999", BAD),
        ("STRING", "DOUBLE", "nan", BAD),
        ("STRING", "FLOAT", "1e39", BAD),
        ("STRING", "FLOAT", "0.5", 0.5),
        ("STRING", "DECIMAL(5,2)", "123.4", Decimal("123.40")),
        ("STRING", "DECIMAL(5,2)", "1.234", BAD),
        ("STRING", "DECIMAL(5,2)", "1234", BAD),
        ("STRING", "DECIMAL(9,2)", "333261.18813585640241206033751974993993643974228", BAD),
        ("STRING", "DECIMAL(9,2)", f"0.{'0' * 70}23", BAD),
        ("STRING", "DECIMAL(9,2)", f"1{'0' * 400}", BAD),
        ("STRING", "DECIMAL(38,38)", "-2147483648", BAD),
        ("STRING", "DECIMAL(38,38)", f"-0.{'9' * 38}", Decimal(f"-0.{'9' * 38}")),
        ("STRING", "DECIMAL(38,0)", "9" * 38, Decimal("9" * 38)),
        ("STRING", "DATE", "2026-02-28", date(2026, 2, 28)),
        ("STRING", "DATE", "2026-02-30", BAD),
        ("STRING", "DATE", "0000-01-01", BAD),
        ("STRING", "TIMESTAMP", "2026-01-02T03:04:05.678901Z", datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
        ("STRING", "TIMESTAMP", "2026-01-02 03:04+0100", datetime(2026, 1, 2, 2, 4, tzinfo=UTC)),
        ("STRING", "TIMESTAMP", "2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("STRING", "TIMESTAMP", "2026-01-02T03:04:05.1234567", BAD),
        ("STRING", "TIMESTAMP", "0001-01-01T00:00+01:00", BAD),
        ("STRING", "TIMESTAMP_NTZ", "2026-01-02T03:04", datetime(2026, 1, 2, 3, 4)),
        ("STRING", "TIMESTAMP_NTZ", "2026-01-02T03:04Z", BAD),
        ("BOOLEAN", "STRING", True, "true"),
        ("BIGINT", "STRING", -7, "-7"),
        ("DATE", "STRING", date(2026, 1, 2), "2026-01-02"),
        ("INT", "BIGINT", 7, 7),
        ("INT", "FLOAT", 2**24, 2.0**24),
        ("INT", "FLOAT", 2**24 + 1, BAD),
        ("INT", "DOUBLE", 2**31 - 1, 2.0**31 - 1),
        ("BIGINT", "INT", 2**31 - 1, 2**31 - 1),
        ("BIGINT", "INT", 2**31, BAD),
        ("BIGINT", "DOUBLE", 2**53, 2.0**53),
        ("BIGINT", "DOUBLE", 2**53 + 1, BAD),
        ("BIGINT", "DOUBLE", -(2**63), BAD),
        ("BIGINT", "FLOAT", -(2**24), -(2.0**24)),
        ("BIGINT", "DECIMAL(5,2)", 999, Decimal("999.00")),
        ("BIGINT", "DECIMAL(5,2)", 1000, BAD),
        ("BIGINT", "DECIMAL(38,0)", 2**63 - 1, Decimal(2**63 - 1)),
        ("FLOAT", "DOUBLE", 0.5, 0.5),
        ("DOUBLE", "BIGINT", 1e18, 10**18),
        ("DOUBLE", "BIGINT", 1.5, BAD),
        ("DOUBLE", "BIGINT", 1e19, BAD),
        ("DOUBLE", "BIGINT", float("nan"), BAD),
        ("DOUBLE", "INT", 2.0**31, BAD),
        ("FLOAT", "INT", 3.0, 3),
        ("DECIMAL(9,2)", "BIGINT", Decimal("7.00"), 7),
        ("DECIMAL(9,2)", "BIGINT", Decimal("7.01"), BAD),
        ("DECIMAL(38,0)", "INT", Decimal(10) ** 30, BAD),
        ("DECIMAL(9,2)", "DECIMAL(9,1)", Decimal("7.10"), Decimal("7.1")),
        ("DECIMAL(9,2)", "DECIMAL(9,1)", Decimal("7.11"), BAD),
        ("DECIMAL(38,0)", "DECIMAL(38,38)", Decimal("9" * 38), BAD),
        ("DECIMAL(24,10)", "DECIMAL(38,34)", Decimal("99999999999999.9999999999"), BAD),
        ("INT", "DECIMAL(38,34)", -1365045446, BAD),
        ("BIGINT", "DECIMAL(38,22)", 2**63 - 1, BAD),
        ("BIGINT", "DECIMAL(38,19)", 2**63 - 1, Decimal(2**63 - 1)),
    ],
)
def test_a_value_is_kept_or_it_does_not_fit(given: str, wanted: str, value: Any, due: Any) -> None:
    found = of(given, wanted, value)
    assert (found is BAD) if due is BAD else found == due


def test_no_number_is_another_one_as_a_decimal_of_other_digits() -> None:
    """Each of many types as each other one: its value, or none."""
    random = Random(1)
    for _ in range(300):
        digits, wanted = random.randint(1, 38), random.randint(1, 38)
        places, behind = random.randint(0, digits), random.randint(0, wanted)
        numbers = [
            random.randrange(10 ** random.randint(1, digits)) * random.choice((1, -1)) for _ in range(9)
        ]
        numbers.append(10**digits - 1)
        values = [Decimal(one).scaleb(-places, EXACT) for one in numbers]
        for given in (
            pa.array(values, pa.decimal128(digits, places)),
            pa.array([f"{one:f}" for one in values]),
        ):
            made, misfits = cast(given, pa.decimal128(wanted, behind))
            for number, value, found in zip(numbers, values, made.to_pylist(), strict=True):
                shifted, rest = divmod(abs(number) * 10**behind, 10**places)
                assert found == (value if not rest and shifted < 10**wanted else None)
            assert misfits.tolist() == made.is_null().to_pylist()


def test_one_misfit_among_many_is_found_and_costs_the_others_nothing() -> None:
    texts = [str(number) for number in range(10_000)]
    texts[7_777] = "9" * 30
    made, misfits = cast(pa.array(texts), pa.int64())
    assert misfits.nonzero()[0].tolist() == [7_777]
    assert made.null_count == 1 and made[9_999].as_py() == 9_999


def test_every_cast_is_tried_with_nothing_and_with_nulls() -> None:
    names = {"DECIMAL": "DECIMAL(9,2)"}
    for given, wanted in CASTS:
        source, target = (kind(names.get(one, one)) for one in (given, wanted))
        for count in (0, 3):
            made, misfits = cast(pa.nulls(count, source), target)
            assert (made.type, len(made), misfits.any()) == (target, count, False)


def test_bytes_become_what_their_text_becomes_and_what_loses_is_no_route() -> None:
    assert route(pa.binary(), pa.int64()) == (pa.string(), pa.int64())
    assert route(pa.binary(), pa.binary()) == ()
    for given, wanted in (
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.string()),
        (UTC_MICROS, LOCAL_MICROS),
        (pa.string(), pa.binary()),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
    ):
        assert route(given, wanted) is None


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
def test_a_number_since_1970_is_a_time_from_the_year_1_to_9999(unit: int) -> None:
    low, high = MICROS[0] // unit, MICROS[1] // unit
    made, misfits = moment(pa.array([0, low - 1, low, high, high + 1, None, 2**63 - 1, -(2**63)]), unit)
    assert misfits.tolist() == [False, True, False, False, True, False, True, True]
    assert made[0].as_py() == datetime(1970, 1, 1, tzinfo=UTC)
    assert (made[2].as_py().year, made[3].as_py().year, made[5].as_py()) == (1, 9999, None)


def test_the_day_of_a_time_is_that_of_utc_before_1970_too() -> None:
    times = pa.array([-1, 0, 86_399_999_999, 86_400_000_000, None], UTC_MICROS)
    assert day(times).to_pylist() == [
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(1970, 1, 1),
        date(1970, 1, 2),
        None,
    ]
