"""`lockstep commit`: end the transaction now, and wait until all that the workers held is durable."""

from __future__ import annotations

import click

from control_topic.controls import COMMIT
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.orders.given import OUTLIVES_MS, Orders, order
from lockstep.orders.words import timeout_option, why_option
from lockstep.output import Output


@click.command("commit")
@config_options(with_schema=False)
@timeout_option(120)
@why_option
@standard_options
def command(output: Output, config: Config, timeout_s: float, why: str) -> int:
    """End the transaction now, and wait until everything that the workers hold is durable.

    Before a deployment, and for tests. Answers with the instant that holds it, or fails where that is not
    known, as where somebody pauses the run meanwhile. What a worker had read that is lost by then is read
    again, and may be committed later. A run that is paused stays so.
    """
    with Orders(config.pipeline.id) as orders:
        lives_ms = int(timeout_s * 1_000) + OUTLIVES_MS
        number = orders.give(order(COMMIT, why=why, lives_ms=lives_ms)).number
        live = orders.settled(number, timeout_s=timeout_s, what="the commit")
        newest = live["newest"]
        output.document(
            {
                "run": orders.run,
                "number": number,
                "instant": newest["instant"] or None,
                "transaction": newest["transaction"] or None,
                "committed": live["committed"],
            },
            f"committed: instant {newest['instant'] or 'none'} holds all that the workers held",
        )
    return 0
