"""`lockstep hdfs`: a real HDFS, for trying things out."""

from __future__ import annotations

from pathlib import Path

import click

from control_topic.cache_folder import default_cache
from lockstep.commands.options import local_server_options, standard_options
from lockstep.launch.local_server import run_in_foreground
from lockstep.output import Output

DEFAULT_PORT = 8020


@click.command("hdfs")
@local_server_options(DEFAULT_PORT)
@standard_options
def command(output: Output, port: int, data: Path | None) -> None:
    """Run an HDFS (a name node and a data node, no security) until Ctrl-C."""
    from lockstep.stores.hdfs import HdfsServer

    folder = data if data is not None else default_cache() / f"hdfs-{port}"

    def ready(server: HdfsServer) -> None:
        output.line(
            {"url": server.url, "pid": server.pid, "data": str(folder)},
            f"HDFS answers on {server.url} (process {server.pid}, data in {folder}). Ctrl-C ends it.",
        )

    output.note(f"Starting HDFS on port {port} (the first time on a machine it is downloaded) …")
    run_in_foreground(HdfsServer(folder, port=port), ready)
