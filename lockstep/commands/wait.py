"""`lockstep wait`: for scripts that go on once the table has what they produced."""

from __future__ import annotations

import click

from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.config.units import parse_duration_ms
from lockstep.errors import EXIT_WELL, ConfigError, Failed, Halted
from lockstep.output import Output
from lockstep.waiting.goals import Goal, ToLag, ToOffsets, ToTime, parse_wanted
from lockstep.waiting.wait import Wait
from lockstep.when import parse_time_ms

TIMEOUT_MAX_MS = 7 * 86_400_000


@click.command("wait")
@config_options(with_schema=False)
@click.option(
    "--offset",
    "offsets",
    multiple=True,
    metavar="TOPIC:P=OFFSET",
    help="Until the next offset of this source partition is OFFSET or later. May be repeated.",
)
@click.option("--latest", is_flag=True, help="Until all is there that the topics held when it was asked.")
@click.option(
    "--lag",
    type=click.IntRange(min=0),
    metavar="N",
    help="Until the table is N records behind at most, all source partitions together.",
)
@click.option(
    "--complete-through",
    metavar="TIME",
    help="Until no earlier event time is to come, as the table's watermark says: 2026-11-20T00:00Z.",
)
@click.option(
    "--timeout", default="10m", show_default=True, metavar="DURATION", help="How long at most: 30s, 10m, 2h."
)
@standard_options
def command(
    output: Output,
    config: Config,
    offsets: tuple[str, ...],
    latest: bool,
    lag: int | None,
    complete_through: str | None,
    timeout: str,
) -> int:
    """Wait until the table has what you ask for: its newest commit's offsets, or its watermark, say so.

    Waits as well where table, topic or broker are not there yet. Exit code 0 once the table has it, 1 when
    time is up, 3 where the run has halted.
    """
    goal = _goal(config, offsets, latest, lag, complete_through)
    timeout_ms = _timeout_ms(timeout)
    outcome = Wait(config, checked_kafka(config), goal, timeout_ms=timeout_ms).run()
    text = outcome.to_text()
    if outcome.verdict.reached:
        output.document(outcome.to_json(), text)
        return EXIT_WELL
    if output.is_json:
        output.document(outcome.to_json(), text)
    raise Halted(text) if outcome.halted is not None else Failed(text)


def _goal(
    config: Config, offsets: tuple[str, ...], latest: bool, lag: int | None, complete_through: str | None
) -> Goal:
    if bool(offsets) + latest + (lag is not None) + (complete_through is not None) != 1:
        raise ConfigError(
            "say what to wait for: --offset TOPIC:P=OFFSET, or --latest, or --lag N, or "
            "--complete-through TIME"
        )
    if complete_through is not None:
        rule = config.mark_rule()
        at_ms = parse_time_ms("--complete-through", complete_through)
        return ToTime(at_ms=at_ms, of=rule.of if rule is not None else "")
    if lag is not None:
        return ToLag(records_max=lag)
    return ToOffsets(wanted=parse_wanted(offsets, config.source.topics) if offsets else None)


def _timeout_ms(text: str) -> int:
    try:
        timeout_ms = parse_duration_ms(text)
    except ValueError as error:
        raise ConfigError(f"--timeout: {error}") from error
    if timeout_ms > TIMEOUT_MAX_MS:
        raise ConfigError(f"--timeout {text}: longer than a week")
    return timeout_ms
