"""What commands that give orders share: their options, and settings in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from control_topic.controls import SETTINGS, Setting
from lockstep.config.units import format_duration, format_size

TIMEOUT_MAX_S = 3_600.0

why_option = click.option(
    "--why",
    default="",
    metavar="TEXT",
    help="Kept with the order: in the run's status, and on the control topic.",
)


def timeout_option(default_s: int) -> Callable[[Any], Any]:
    """`--timeout`, in seconds. The command is given `timeout_s`."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(0.1, TIMEOUT_MAX_S),
        default=default_s,
        show_default=True,
        help="Seconds to wait until it is done.",
    )


def spelled(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Setting, as the configuration calls it -> its value for people. `settings`: by field, in base units."""
    return {SETTINGS[field]: _text(field, value) for field, value in settings.items() if field in SETTINGS}


def _text(field: str, value: Setting) -> str:
    if isinstance(value, str):
        return value or "none"
    if field == "align_ms" and not value:
        return "none"
    if field.endswith("_ms"):
        return format_duration(value)
    if not value:
        return "no limit"
    return format_size(value) if field == "max_bytes" else f"{value:,}"
