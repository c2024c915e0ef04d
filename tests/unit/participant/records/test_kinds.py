"""The registry of formats and envelopes, and what the configuration offers of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from lockstep.config.record_section import RecordSection
from participant.records.by_schema.framing import SPLITS
from participant.records.kinds import ENVELOPES, FORMATS, FRAMINGS, format_made, made
from participant.records.port import BY_SCHEMA, RecordSpec


@pytest.mark.parametrize("name", ENVELOPES)
def test_every_envelope_that_is_registered_can_be_made(name: str) -> None:
    assert type(made(ENVELOPES[name].made_by)).__name__ == ENVELOPES[name].made_by.partition(":")[2]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_that_is_registered_can_be_made(name: str) -> None:
    kind = type(format_made(name, RecordSpec()))
    assert kind.__name__ == FORMATS[name].made_by.partition(":")[2]


def test_a_framing_that_is_offered_is_one_that_is_read() -> None:
    assert FRAMINGS.keys() == SPLITS.keys() == set().union(*(kind.framings for kind in FORMATS.values()))
    assert {name for name, kind in FORMATS.items() if kind.framings} == BY_SCHEMA


@pytest.mark.parametrize(
    ("setting", "registered"), [("format", FORMATS), ("key_format", FORMATS), ("envelope", ENVELOPES)]
)
def test_the_configuration_offers_what_is_registered(setting: str, registered: Mapping[str, object]) -> None:
    given = {"schema": "id STRING"}
    for name in registered:
        assert getattr(RecordSection.model_validate({**given, setting: name}), setting) == name
        assert f"`{name}`, " in str(RecordSection.model_fields[setting].description)
    with pytest.raises(ValueError, match=f"'nuxi' is not one of {', '.join(registered)}"):
        RecordSection.model_validate({**given, setting: "nuxi"})


def test_an_envelope_is_read_from_formats_that_there_are() -> None:
    assert all(kind.formats and kind.formats <= FORMATS.keys() for kind in ENVELOPES.values())


def test_looking_into_the_registry_loads_no_decoder() -> None:
    """The configuration does, at the start of every command."""
    code = "import sys, participant.records.kinds; print('pyarrow' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
