"""The configuration under hypothesis: valid, or refused in sentences that name the setting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockstep.config.load import from_mapping
from lockstep.config.problems import InvalidConfiguration
from tests.fuzz import configuration, strategies

LAYERS, HANDED_ON, UNITS = configuration.TARGETS


def layers(file: str, **environment: str) -> list[dict[str, Any]]:
    return [{"file": file.encode(), "environment": environment, "conf": {}, "sets": []}]


@settings(strategies.PROFILE, max_examples=150)
@given(strategies.cases(LAYERS))
@example(layers("pipeline.workers = " + "1" * 5_000))
@example(layers("transaction.max_records = 0x" + "f" * 5_000))
@example(layers("transaction.interval = 0x" + "f" * 5_000))
@example(layers("record.max_rejects = 0x" + "f" * 5_000))
@example(layers("record.max_rejects = -1"))
@example(layers("pipeline.workers = " + "[" * 5_000 + "]" * 5_000))
@example(layers(".".join(["a"] * 5_000) + " = 1"))
@example(layers("", LOCKSTEP_TABLE__HUDI="[" * 100_000))
@example(layers("", LOCKSTEP_PIPELINE__WORKERS="--5"))
@example(layers("", LOCKSTEP_RECORD__SCHEMA="a DECIMAL(x,y)"))
@example(layers("", LOCKSTEP_RECORD__SCHEMA="a DECIMAL(1.5)"))
@example(layers("", LOCKSTEP_PIPELINE__ID="\udcff"))
def test_a_configuration_is_valid_or_refused_in_sentences(case: Any) -> None:
    LAYERS.check(case)


@settings(strategies.PROFILE, max_examples=300)
@given(st.dictionaries(st.sampled_from((*configuration.SETTINGS, "a.b")), strategies.tables, max_size=3))
def test_settings_of_any_type_are_valid_or_refused_in_sentences(given_settings: dict[str, Any]) -> None:
    spelled = {**configuration.SOUND, **{name: strategies.toml(v) for name, v in given_settings.items()}}
    LAYERS.check(layers("\n".join(f"{name} = {value}" for name, value in spelled.items())))


@settings(strategies.PROFILE, max_examples=500)
@given(st.text(max_size=60))
def test_any_text_is_refused_in_sentences(text: str) -> None:
    LAYERS.check([{"file": text.encode("utf-8", "replace"), "environment": {}, "conf": {}, "sets": [text]}])


@settings(strategies.PROFILE, max_examples=200)
@given(strategies.cases(HANDED_ON))
def test_what_is_handed_on_is_a_whole_configuration_or_refused(case: Any) -> None:
    HANDED_ON.check(case)


@settings(strategies.PROFILE, max_examples=200)
@given(strategies.cases(UNITS))
def test_durations_and_sizes_are_read_back(case: Any) -> None:
    UNITS.check(case)


def test_a_section_that_is_no_section_is_not_passed_over() -> None:
    with pytest.raises(InvalidConfiguration, match="memory: not a setting"):
        from_mapping({"memory": 5})  # type: ignore[dict-item]
