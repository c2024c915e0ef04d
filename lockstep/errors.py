"""Errors of the application. Each knows the exit code that the command line ends with.

0 well, 1 failed, 2 usage or configuration, 3 halted, 4 not exact, 5 superseded by a newer run.
"""

from __future__ import annotations

EXIT_WELL = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_HALTED = 3
EXIT_NOT_EXACT = 4
EXIT_SUPERSEDED = 5
EXIT_INTERRUPTED = 130
"""128 + SIGINT, what a shell shows for a program that Ctrl-C ended at once."""

EXIT_MEANINGS = {
    EXIT_WELL: "well",
    EXIT_FAILED: "failed",
    EXIT_USAGE: "usage or configuration",
    EXIT_HALTED: "halted",
    EXIT_NOT_EXACT: "not exact",
    EXIT_SUPERSEDED: "superseded by a newer run",
}


class LockstepError(Exception):
    """Base of all errors of the application. The message is for an operator: what, where, what to do."""

    exit_code = EXIT_FAILED


class Failed(LockstepError):
    """The command did not do what it was asked for."""


class ConfigError(LockstepError):
    """The configuration or the command line is wrong; nothing was started."""

    exit_code = EXIT_USAGE


class Halted(LockstepError):
    """The run stopped itself because going on would lose or double records, or fail for ever."""

    exit_code = EXIT_HALTED


class NotExact(LockstepError):
    """`verify` found offsets missing, doubled or unexpected."""

    exit_code = EXIT_NOT_EXACT


class Superseded(LockstepError):
    """A newer run of the same pipeline has taken over."""

    exit_code = EXIT_SUPERSEDED


OUR_PACKAGES = frozenset({"lockstep", "table", "control_topic", "coordinator", "participant"})
"""Errors that these packages define are sentences for an operator; anybody else's are not."""


def sentence(error: Exception) -> str:
    """Return the sentence about an error for operators; for the JVM's, about the exception it threw."""
    if type(error).__module__.partition(".")[0] in OUR_PACKAGES:
        return str(error)
    return f"unexpected: {type(error).__name__}: {thrown(error)}; --debug shows where it came from"


def thrown(error: Exception) -> str:
    """Return the first line of an error that says something: of one of the JVM's, what was thrown there."""
    lines = str(error).strip().splitlines() or [""]
    if type(error).__name__ != "Py4JJavaError":
        return lines[0]
    return next((line[2:] for line in lines[1:] if line.startswith(": ")), lines[0])  # Py4J's own form
