"""`lockstep events`: the control topic, decoded."""

from __future__ import annotations

import time

import click

from control_topic.kafka import ControlReader, ControlTopic
from control_topic.transport import Received
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import Failed
from lockstep.output import Output
from lockstep.watch.topic_lines import TYPES, Filter, as_json, as_text, heading

TAIL_MESSAGES = 100
FILTERED_TAIL_MESSAGES = 10_000
POLL_S = 0.5
SILENCE_MAX_S = 30.0
"""Without --follow: so long without progress, and the broker is given up."""


@click.command("events")
@config_options(with_schema=False)
@click.option("--follow", "-f", is_flag=True, help="Go on with what arrives, until Ctrl-C.")
@click.option("--from-beginning", is_flag=True, help="From the oldest message that the topic still has.")
@click.option(
    "--type",
    "types",
    type=click.Choice(TYPES, case_sensitive=False),
    multiple=True,
    metavar="TYPE",
    help=f"Only messages of this type; may be repeated. Types: {', '.join(TYPES)}.",
)
@click.option(
    "--transaction", default="", metavar="ID", help="Only this transaction's; a beginning of its id will do."
)
@standard_options
def command(
    output: Output,
    config: Config,
    follow: bool,
    from_beginning: bool,
    types: tuple[str, ...],
    transaction: str,
) -> None:
    """Show what coordinator and workers say to each other.

    Without --from-beginning: the last 100 messages, or what a filter lets through of the last 10,000.
    Nobody checks here who wrote a message: what has no mark is not a run's own word, and what has one only
    the workers of its run can check. Damaged messages and those of another version are shown as UNREADABLE
    and never stop it.
    """
    wanted = Filter(types=frozenset(types), transaction=transaction)
    kafka = checked_kafka(config)
    topic = config.control.topic
    if not ControlTopic(kafka, topic).describe().exists:
        raise Failed(
            f"the control topic {topic} does not exist on {config.source.bootstrap_servers}: "
            "it is made when the pipeline first runs; check control.topic and source.bootstrap_servers"
        )
    reader = ControlReader(
        kafka,
        topic,
        start="beginning" if from_beginning else "tail",
        tail_messages=FILTERED_TAIL_MESSAGES if types or transaction else TAIL_MESSAGES,
        surface_parts=True,
    )
    try:
        _show(reader, output, wanted, follow=follow)
    except KeyboardInterrupt:
        if not follow:
            raise
    finally:
        reader.close()


def _show(reader: ControlReader, output: Output, wanted: Filter, *, follow: bool) -> None:
    shown = False
    silent_since = time.monotonic()
    while follow or not reader.caught_up:
        arrived = reader.poll(POLL_S)
        if arrived:
            silent_since = time.monotonic()
        elif not follow and time.monotonic() - silent_since > SILENCE_MAX_S:
            raise Failed(
                f"the control topic gave nothing for {SILENCE_MAX_S:.0f} s and its end is not reached: "
                f"{reader.last_error or 'the broker does not answer'}"
            )
        for received in filter(wanted, arrived):
            _show_one(received, output, first=not shown)
            shown = True
    if not shown:
        output.note("No message to show.")


def _show_one(received: Received, output: Output, *, first: bool) -> None:
    width = output.console.width if output.console.is_terminal else None
    if first:
        output.note("Shown as written: only the workers of a run can check whose word a message is.")
        output.note(heading)
    output.line(as_json(received), lambda: as_text(received, width=width))
