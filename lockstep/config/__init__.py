"""The configuration: one TOML file and what overlays it. See docs/configuration.md."""

from lockstep.config.kafka import resolve_kafka
from lockstep.config.load import from_json, from_mapping, load, overlaid
from lockstep.config.model import Config
from lockstep.config.problems import InvalidConfiguration, Problem

__all__ = [
    "Config",
    "InvalidConfiguration",
    "Problem",
    "from_json",
    "from_mapping",
    "load",
    "overlaid",
    "resolve_kafka",
]
