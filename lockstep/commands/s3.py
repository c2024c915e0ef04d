"""`lockstep s3`: a real S3 server, for trying things out."""

from __future__ import annotations

from pathlib import Path

import click

from control_topic.cache_folder import default_cache
from lockstep.commands.options import local_server_options, standard_options
from lockstep.launch.local_server import run_in_foreground
from lockstep.output import Output

DEFAULT_PORT = 8333


@click.command("s3")
@local_server_options(DEFAULT_PORT)
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Is there then; may be repeated.")
@standard_options
def command(output: Output, port: int, data: Path | None, buckets: tuple[str, ...]) -> None:
    """Run an S3 server (SeaweedFS, one node) until Ctrl-C. Everybody knows its secret key."""
    from lockstep.stores.local import ACCESS_KEY, REGION, SECRET_KEY, S3Server

    folder = data if data is not None else default_cache() / f"s3-{port}"

    def ready(server: S3Server) -> None:
        for name in buckets:
            server.make_bucket(name)
        keys = {"region": REGION, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
        output.line(
            {"endpoint": server.endpoint, **keys, "pid": server.pid, "data": str(folder)},
            f"S3 answers on {server.endpoint} (process {server.pid}, data in {folder}; region {REGION}, "
            f"access key {ACCESS_KEY}, secret key {SECRET_KEY}). Ctrl-C ends it.",
        )

    output.note(f"Starting an S3 server on port {port} …")
    run_in_foreground(S3Server(folder, port=port), ready)
