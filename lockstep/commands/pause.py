"""`lockstep pause`: commit what is open, and begin nothing until the run is resumed."""

from __future__ import annotations

import click

from control_topic.controls import PAUSE
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.orders.given import Orders, order
from lockstep.orders.words import timeout_option, why_option
from lockstep.output import Output


@click.command("pause")
@config_options(with_schema=False)
@timeout_option(120)
@why_option
@standard_options
def command(output: Output, config: Config, timeout_s: float, why: str) -> int:
    """Commit the open transaction and begin no other until `lockstep resume`. Waits until that is so.

    Orders to commit that are not done by then are given up, and say so. The workers stay, and stay in the
    consumer group; they read on until their memory is full. No record is committed meanwhile; what serves
    the table itself, as compaction and cleaning, goes on. Nothing counts as an outage.
    """
    with Orders(config.pipeline.id) as orders:
        number = orders.give(order(PAUSE, why=why)).number
        live = orders.settled(number, timeout_s=timeout_s, what="the pause")
        if live["control"]["paused"] is None:
            raise Failed(f"run {orders.run} was resumed by somebody else before it was paused")
        instant = live["newest"]["instant"]
        output.document(
            {"run": orders.run, "number": number, "paused": True, "instant": instant or None},
            f"paused: run {orders.run} begins no transaction until `lockstep resume`; the last is instant "
            f"{instant or 'none'}",
        )
    return 0
