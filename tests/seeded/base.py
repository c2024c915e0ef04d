"""What a seeded bug of a shell is, and how it is put into a process. Knows no module of production.

A bug replaces what a name stands for: a function, a method, a class, a number. `tests/seeded/site` puts it
in as Python starts, before anything else is imported, in the process that plays tests and in all that those
start. A name is best replaced where it is used: whoever has imported it elsewhere may keep the right one.

What becomes of that is noted in a file, which all these processes share: that a wrong piece was used, without
which no test has found it; and that it failed by a mistake of its own, with which none has.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.seeded.holes import Hole

NAME = "LOCKSTEP_SEEDED_BUG"
"""The variable of the environment that names the bug, and the one that names the file for notes."""
NOTES = "LOCKSTEP_SEEDED_NOTES"
MISTAKES = (AttributeError, TypeError, NameError, LookupError, ImportError, NotImplementedError)
"""What a wrong piece that is itself mistaken raises, where it is the wrong piece that raises it."""

Wrong = Callable[[Any], Any]
"""Given what a name stands for: what it stands for with the bug. A method is a function, as in its class."""


class Note(StrEnum):
    USED = "used"
    MISTAKEN = "mistaken"


@dataclass(frozen=True, slots=True)
class Bug:
    """One seeded bug of a shell."""

    name: str
    says: str
    """What is wrong: a sentence."""
    hole: Hole
    """What it opens again."""
    wrong: Mapping[str, Wrong]
    """By place: `module:attribute`, or `module:Class.attribute`."""
    found_by: tuple[str, ...]
    """The node ids of the tests that must fail with it."""
    raises: Mapping[str, str] = field(default_factory=dict)
    """Errors that tell of it, beside failed assertions: `module.Class`, and a part of what it says."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name is."""

    owner: Any
    name: str
    right: Any
    """What it stands for; what is bound to an object or a class is not bound here."""


class Missing(LookupError):
    """What a bug replaces is not there."""


def always(answer: Any) -> Wrong:
    """In place of what finds something out: it is this, whatever is asked."""
    return lambda _right: lambda *_args, **_kwargs: answer


def of(file: str, *names: str) -> tuple[str, ...]:
    """The node ids of these tests of a file."""
    return tuple(f"{file}::{name}" for name in names)


def find(place: str) -> Place:
    """Raises `Missing`."""
    module, _, path = place.partition(":")
    try:
        owner: Any = importlib.import_module(module)
        *outer, name = path.split(".")
        for one in outer:
            owner = getattr(owner, one)
        return Place(owner, name, _bare(inspect.getattr_static(owner, name)))
    except (ImportError, AttributeError) as error:
        raise Missing(f"{place}: {error}") from error


def _bare(found: Any) -> Any:
    if isinstance(found, property):
        return found.fget
    return found.__func__ if isinstance(found, classmethod | staticmethod) else found


def put_in(bug: Bug) -> None:
    """Into this process, for good. Raises `Missing`."""
    for place, wrong in bug.wrong.items():
        found = find(place)
        made = wrong(found.right)
        if made is found.right:
            raise Missing(f"{bug.name}: {place} stays as it is")
        if callable(made) and not isinstance(made, type):
            made = _noted(place, made)
        now = inspect.getattr_static(found.owner, found.name)
        kind = type(now) if isinstance(now, property | classmethod | staticmethod) else None
        setattr(found.owner, found.name, made if kind is None else kind(made))


def _noted(place: str, wrong: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wrong)
    def noting(*args: Any, **kwargs: Any) -> Any:
        note(Note.USED, place)
        try:
            return wrong(*args, **kwargs)
        except MISTAKES as error:
            if _is_ours(error):
                note(Note.MISTAKEN, f"{place}: {error!r}")
            raise

    return noting


def _is_ours(error: BaseException) -> bool:
    """Whether a wrong piece has raised it, and nothing that it has called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    here = Path(__file__).parent
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).parent == here


@functools.cache
def note(what: Note, text: str) -> None:
    """Once in each process; one write, so that those of several processes stay apart."""
    path = os.environ.get(NOTES)
    if path:
        with open(path, "ab", buffering=0) as file:
            file.write(f"{what.value} {' '.join(text.split())}\n".encode())
