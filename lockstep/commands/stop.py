"""`lockstep stop`: commit what is open, and end the run."""

from __future__ import annotations

import click

from control_topic.controls import STOP
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.orders.given import Orders, order
from lockstep.orders.words import timeout_option, why_option
from lockstep.output import Output


@click.command("stop")
@config_options(with_schema=False)
@click.option(
    "--drain",
    is_flag=True,
    help="Commit what is open and held before. It always does; for scripts that say so.",
)
@timeout_option(300)
@why_option
@standard_options
def command(output: Output, config: Config, drain: bool, timeout_s: float, why: str) -> int:
    """Commit the open transaction and what workers hold, and end the run, as SIGTERM does. Waits for its end.

    The exit code of the run itself says how it ended; this one, that it did.
    """
    with Orders(config.pipeline.id) as orders:
        number = orders.give(order(STOP, why=why)).number
        last = orders.ended(timeout_s=timeout_s)
        instant = (last.get("newest") or {}).get("instant")
        output.document(
            {"run": orders.run, "number": number, "instant": instant or None},
            f"stopped: run {orders.run} has ended"
            + (f"; the last seen is instant {instant}" if instant else ""),
        )
    return 0
