"""Durations and sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.config.units import (
    format_duration,
    format_share,
    format_size,
    parse_duration_ms,
    parse_share,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000), ("1.5s", 1_500), (" 5 S ", 5_000)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("512MB", 512_000_000),
        ("1GiB", 2**30),
        ("120mb", 120_000_000),
        ("64 KiB", 65_536),
        ("7B", 7),
        ("1.5kB", 1_500),
    ],
)
def test_a_size_is_decimal_unless_its_unit_says_binary(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("value", [5, 5.0, "5", " 5 ", "0.5"])
def test_a_number_without_a_unit_is_refused_and_the_sentence_says_so(value: object) -> None:
    with pytest.raises(ValueError, match='has no unit: write a duration such as "10s"'):
        parse_duration_ms(value)
    with pytest.raises(ValueError, match='has no unit: write a size such as "120MB"'):
        parse_size_bytes(value)


@pytest.mark.parametrize("value", ["", "s", "-5s", "5s5s", "1e3s", True, None, [], "5 s x", "9" * 40 + "s"])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration_ms(value)


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'d' is not a unit of a duration: the units are ms, s, m, h"):
        parse_duration_ms("3d")


def test_a_part_of_the_smallest_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="a millisecond cannot be divided"):
        parse_duration_ms("0.5ms")
    with pytest.raises(ValueError, match="a byte cannot be divided"):
        parse_size_bytes("1.0001kB")


@given(st.integers(min_value=0, max_value=10**14))
def test_what_is_formatted_parses_to_the_same_number(quantity: int) -> None:
    assert parse_duration_ms(format_duration(quantity)) == quantity
    assert parse_size_bytes(format_size(quantity)) == quantity


def test_formatting_takes_the_shortest_spelling() -> None:
    assert [format_duration(ms) for ms in (0, 1, 1_500, 60_000, 90_000, 7_200_000)] == [
        "0ms",
        "1ms",
        "1500ms",
        "1m",
        "90s",
        "2h",
    ]
    assert [format_size(size) for size in (0, 1_000, 1_024, 120_000_000, 2**20)] == [
        "0B",
        "1kB",
        "1KiB",
        "120MB",
        "1MiB",
    ]


@pytest.mark.parametrize(
    ("text", "share"), [("25%", 0.25), (" 1 %", 0.01), ("100%", 1), ("12.5%", 0.125), ("7%", 0.07)]
)
def test_a_share_is_a_number_of_percent_and_is_written_as_it_is_read(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)
    assert format_share(parse_share(text)) == text.replace(" ", "")


@pytest.mark.parametrize("value", ["0%", "0.9%", "101%", "25", 25, 0.25, "", "%", "-5%", "1e2%", True, None])
def test_what_is_no_share_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is no share from 1% to 100%"):
        parse_share(value)
