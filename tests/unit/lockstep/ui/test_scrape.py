"""Metrics of several pipelines become one text that a scraper takes."""

from __future__ import annotations

from lockstep.ui.scrape import merged, wants_openmetrics


def of(pipeline: str, *, ended: bool) -> bytes:
    text = f"""\
# HELP lockstep_rows rows
# TYPE lockstep_rows counter
lockstep_rows_total{{pipeline="{pipeline}"}} 1.0
# HELP lockstep_took seconds
# TYPE lockstep_took histogram
lockstep_took_bucket{{pipeline="{pipeline}",le="+Inf"}} 2.0
lockstep_took_sum{{pipeline="{pipeline}"}} 3.0
"""
    return (text + ("# EOF\n" if ended else "")).encode()


def test_one_is_left_as_it_is() -> None:
    assert merged([of("a", ended=True)]) == of("a", ended=True)


def test_a_family_stands_together_and_has_one_head() -> None:
    lines = merged([of("a", ended=True), of("b", ended=True)]).decode().splitlines()
    assert lines == [
        "# HELP lockstep_rows rows",
        "# TYPE lockstep_rows counter",
        'lockstep_rows_total{pipeline="a"} 1.0',
        'lockstep_rows_total{pipeline="b"} 1.0',
        "# HELP lockstep_took seconds",
        "# TYPE lockstep_took histogram",
        'lockstep_took_bucket{pipeline="a",le="+Inf"} 2.0',
        'lockstep_took_sum{pipeline="a"} 3.0',
        'lockstep_took_bucket{pipeline="b",le="+Inf"} 2.0',
        'lockstep_took_sum{pipeline="b"} 3.0',
        "# EOF",
    ]


def test_the_plain_form_has_no_end() -> None:
    assert b"EOF" not in merged([of("a", ended=False), of("b", ended=False)])
    assert merged([b"", b""]) == b""


def test_what_a_scraper_wants_is_in_its_accept_header() -> None:
    assert wants_openmetrics("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5")
    assert not wants_openmetrics("text/plain")
    assert not wants_openmetrics("")
