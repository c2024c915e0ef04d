"""Metrics for Prometheus, from what an observer has seen: all ages are computed when they are asked for.

The names are those of `lockstep.watch.metric_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from lockstep.watch.counters import BUCKETS_S, Histogram
from lockstep.watch.metric_table import COUNTER, HISTOGRAM, INFO, METRICS, PIPELINE, Metric
from lockstep.watch.metric_values import MetricsSeen

INFO_SUFFIX = "_info"


class PipelineCollector(Collector):
    """prometheus-client's collector of one pipeline. `look`: what is seen, made anew for each scrape."""

    def __init__(self, look: Callable[[], MetricsSeen]) -> None:
        self._look = look

    def collect(self) -> Iterator[Family]:
        """Every family that has a sample."""
        seen = self._look()
        pipeline = str(seen.document[PIPELINE])
        for metric in METRICS:
            family = _family(metric, pipeline, seen)
            if family.samples:
                yield family


def exposed(look: Callable[[], MetricsSeen], *, as_openmetrics: bool) -> bytes:
    """The text of a scrape: OpenMetrics 1.0.0, or Prometheus' classic text 0.0.4."""
    collector = PipelineCollector(look)
    if as_openmetrics:
        text: bytes = openmetrics.generate_latest(collector)  # type: ignore[no-untyped-call]
        return text
    return exposition.generate_latest(collector)


def _family(metric: Metric, pipeline: str, seen: MetricsSeen) -> Family:
    labels = (PIPELINE, *metric.labels)
    samples = [((pipeline, *places), value) for places, value in metric.values(seen)]
    if metric.kind == HISTOGRAM:
        histograms = HistogramMetricFamily(metric.name, metric.meaning, labels=labels, unit=metric.unit)
        for places, value in samples:
            if isinstance(value, Histogram):
                histograms.add_metric(places, _buckets(value), value.sum_ms / 1_000)
        return histograms
    family = _plain_family(metric, labels)
    for places, value in samples:
        if isinstance(value, Histogram):
            continue
        if isinstance(family, InfoMetricFamily):
            family.add_metric(places[:1], dict(zip(metric.labels, places[1:], strict=True)))
        else:
            family.add_metric(places, value)
    return family


def _plain_family(
    metric: Metric, labels: tuple[str, ...]
) -> InfoMetricFamily | CounterMetricFamily | GaugeMetricFamily:
    if metric.kind == INFO:
        return InfoMetricFamily(metric.name.removesuffix(INFO_SUFFIX), metric.meaning, labels=labels[:1])
    unit = metric.unit if metric.name.removesuffix("_total").endswith(f"_{metric.unit}") else ""
    if metric.kind == COUNTER:
        return CounterMetricFamily(metric.name, metric.meaning, labels=labels, unit=unit)
    return GaugeMetricFamily(metric.name, metric.meaning, labels=labels, unit=unit)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [*map(floatToGoString, BUCKETS_S), "+Inf"]
    return list(zip(bounds, map(float, histogram.cumulated()), strict=True))
