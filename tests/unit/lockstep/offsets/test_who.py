"""Whose name a change of offsets bears."""

from __future__ import annotations

import os

import pytest

from lockstep.offsets.carry_out import operator


def test_whoever_has_no_name_on_this_machine_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is started for a user of whom it knows nothing."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567)
    assert operator() == "uid 1234567"
