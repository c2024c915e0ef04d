"""`lockstep resume`: a paused run goes on."""

from __future__ import annotations

import click

from control_topic.controls import RESUME
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.orders.given import Orders, order
from lockstep.orders.words import why_option
from lockstep.output import Output


@click.command("resume")
@config_options(with_schema=False)
@why_option
@standard_options
def command(output: Output, config: Config, why: str) -> int:
    """Let a paused run go on where it stopped. One that is not paused is left as it is."""
    with Orders(config.pipeline.id) as orders:
        number = orders.give(order(RESUME, why=why)).number
        output.document(
            {"run": orders.run, "number": number, "paused": False},
            f"resumed: run {orders.run} goes on where it stopped",
        )
    return 0
