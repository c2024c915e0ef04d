"""Metrics of several pipelines become one text that a scraper takes."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_classic

from lockstep.ui.scrape import merged, wants_openmetrics
from lockstep.watch.metrics import exposed
from lockstep.watch.seen import metrics_seen
from tests.watched import PIPELINE, rich, seen


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


@pytest.mark.parametrize("as_openmetrics", [True, False])
def test_what_two_real_pipelines_say_is_read_by_prometheus_own_reader(as_openmetrics: bool) -> None:
    said = rich()
    found = seen(said)
    one = exposed(lambda: metrics_seen(found, said.now_ms), as_openmetrics=as_openmetrics)
    other = one.replace(f'"{PIPELINE}"'.encode(), b'"another"')
    read = read_openmetrics if as_openmetrics else read_classic
    alone = sum(len(family.samples) for family in read(one.decode()))
    both = list(read(merged([one, other]).decode()))
    assert sum(len(family.samples) for family in both) == 2 * alone
    assert len({family.name for family in both}) == len(both)


def test_the_plain_form_has_no_end() -> None:
    assert b"EOF" not in merged([of("a", ended=False), of("b", ended=False)])
    assert merged([b"", b""]) == b""


def test_what_a_scraper_wants_is_in_its_accept_header() -> None:
    assert wants_openmetrics("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5")
    assert not wants_openmetrics("text/plain")
    assert not wants_openmetrics("")


def test_a_line_ends_with_a_newline_and_with_nothing_else() -> None:
    odd = b'# HELP a x\n# TYPE a gauge\na{worker="w\r# EOF"} 1.0\na{worker="\x0bb\x0c"} 1.0\n'
    assert merged([odd, b""]) == odd
