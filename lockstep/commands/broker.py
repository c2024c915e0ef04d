"""`lockstep broker`: a real single-node Kafka, for trying things out."""

from __future__ import annotations

from pathlib import Path

import click

from control_topic.cache_folder import default_cache
from lockstep.brokers.local import Broker
from lockstep.commands.options import local_server_options, standard_options
from lockstep.launch.local_server import run_in_foreground
from lockstep.output import Output

DEFAULT_PORT = 9092


@click.command("broker")
@local_server_options(DEFAULT_PORT)
@standard_options
def command(output: Output, port: int, data: Path | None) -> None:
    """Run a Kafka broker (KRaft, one node, no security) until Ctrl-C. Its jars are downloaded once."""
    folder = data if data is not None else default_cache() / f"broker-{port}"

    def ready(broker: Broker) -> None:
        output.line(
            {"bootstrap_servers": broker.bootstrap_servers, "pid": broker.pid, "data": str(folder)},
            f"Kafka answers on {broker.bootstrap_servers} (process {broker.pid}, data in {folder}). "
            "Ctrl-C ends it.",
        )

    output.note(f"Starting Kafka on port {port} …")
    run_in_foreground(Broker(folder, port=port), ready)
