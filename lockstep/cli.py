"""The command line: which commands there are, and how any of them ends.

A command is a module of its own and imported only when it is asked for, so that looking at the control topic
does not load Spark. To add one: its name, module and line of help in `COMMANDS`.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from control_topic.spelling import plain
from lockstep.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_MEANINGS, EXIT_WELL, LockstepError, sentence
from lockstep.launch.process_end import run_process
from lockstep.launch.start_up import importing
from lockstep.output import OutputClosed

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("lockstep.commands.run", "Move records into the table until told to stop."),
    "demo": ("lockstep.commands.demo", "Watch it work on this machine, with a worker killed on the way."),
    "prepare": ("lockstep.commands.prepare", "Make once what lets every later start be quicker."),
    "broker": ("lockstep.commands.broker", "A real single-node Kafka broker in the foreground."),
    "s3": ("lockstep.commands.s3", "A real S3 server in the foreground, for trying things out."),
    "hdfs": ("lockstep.commands.hdfs", "A real HDFS in the foreground, for trying things out."),
    "events": ("lockstep.commands.events", "The control topic, decoded."),
    "dead-letters": (
        "lockstep.commands.dead_letters",
        "What was set aside, whether it would be a row now, and the way back.",
    ),
    "status": ("lockstep.commands.status", "Coordinator, current transaction, last commit, lag."),
    "ui": ("lockstep.commands.ui", "Show pipelines in a browser: transactions, lag, workers, troubles."),
    "wait": ("lockstep.commands.wait", "For scripts: until the table has what was produced."),
    "set": ("lockstep.commands.set", "Other settings while the run goes on, until it ends."),
    "commit": ("lockstep.commands.commit", "End the transaction now; wait until it is durable."),
    "pause": ("lockstep.commands.pause", "Commit what is open, and begin nothing until it is resumed."),
    "resume": ("lockstep.commands.resume", "Let a paused run go on."),
    "stop": ("lockstep.commands.stop", "Commit what is open, and end the run."),
    "offsets": (
        "lockstep.commands.offsets",
        "Committed offsets by source partition; the way out of refusals.",
    ),
    "sweep": ("lockstep.commands.sweep", "Orphaned data files, with the proof for each; remove them."),
    "verify": ("lockstep.commands.verify", "Check that the table holds every record exactly once."),
    "validate": (
        "lockstep.commands.validate",
        "Check configuration, broker, topics, table, Spark; start nothing.",
    ),
    "infer": ("lockstep.commands.infer", "Read some records, and say which columns they would go into."),
    "migrate": ("lockstep.commands.migrate", "Another sink's configuration as a pipeline's."),
    "support": ("lockstep.commands.support", "What a colleague would ask for, in one archive."),
}
"""Name -> module, whose attribute `command` is the click command, and help."""

logger = logging.getLogger("lockstep")


class LazyGroup(click.Group):
    """Imports a command's module when the command is used, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with importing():
            command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command), cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            ctx.fail(f"there is no command {name}" + (f"; did you mean {near[0]}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_MEANINGS.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="lockstep", message="%(prog)s %(version)s")
def lockstep() -> None:
    """Move records from Kafka into an Apache Hudi table, exactly once.

    Every command takes --output text|json, -v, -q and --debug; most take -c pipeline.toml.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code. Errors become sentences on stderr."""
    debug = "--debug" in arguments
    try:
        outcome = lockstep.main(args=list(arguments), prog_name="lockstep", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except OutputClosed:
        # What is still buffered would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_WELL
    except Exception as error:
        # The last line of defence: a sentence for people, the trace on demand.
        if debug:
            logger.exception("this is where it came from")
        _say(error)
        return error.exit_code if isinstance(error, LockstepError) else EXIT_FAILED
    return outcome if isinstance(outcome, int) else EXIT_WELL


def _say(error: Exception) -> None:
    click.echo(f"{click.style('error:', fg='red', bold=True)} {plain(sentence(error))}", err=True)


def main() -> NoReturn:
    """The entry point of the `lockstep` script."""
    run_process(lambda: run(sys.argv[1:]))


if __name__ == "__main__":
    main()
