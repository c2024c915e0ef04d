"""`lockstep set`: other settings while the run goes on."""

from __future__ import annotations

import click

from control_topic.controls import SET, SETTINGS
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.orders.given import Orders, chosen, order
from lockstep.orders.words import spelled, why_option
from lockstep.output import Output


@click.command("set")
@config_options(with_schema=False)
@click.argument("assignments", nargs=-1, required=True, metavar="SETTING=VALUE…")
@why_option
@standard_options
def command(output: Output, config: Config, assignments: tuple[str, ...], why: str) -> int:
    """Other settings for the run that goes on, from its next transaction until it ends.

    transaction.interval, transaction.write_timeout, transaction.max_records, transaction.max_bytes,
    transaction.schedule, transaction.align; empty, the last two are off. The configuration stays as it is:
    the next run begins with it.
    """
    settings = chosen(config, assignments)
    with Orders(config.pipeline.id) as orders:
        answer = orders.give(order(SET, why=why, settings=settings))
        in_force = answer.tuning.known() if answer.tuning is not None else {}
        said = ", ".join(f"{name} = {text}" for name, text in spelled(settings).items())
        output.document(
            {
                "run": orders.run,
                "number": answer.number,
                "settings": {SETTINGS[field]: value for field, value in in_force.items()},
                "lasts": "until the run ends",
            },
            f"{said}: from the next transaction on, until run {orders.run} ends. The file stays as it is.",
        )
    return 0
