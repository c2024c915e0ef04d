"""One configuration of theirs while it is translated: what was given, what became of each name, what is open.

Nothing is dropped silently: whatever name no rule has said a line about is named as unknown at the end. A
secret becomes a reference, and its value is in no line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from lockstep.config import secrets
from lockstep.config.problems import VALUE_CHARACTERS_MAX
from lockstep.config.secrets import holds_secret, without_secrets

NOT_GIVEN = "(not given)"
PROPERTY_TABLES = ("source.kafka", "table.hudi", "record.columns")
"""Settings that hold names of others."""

_THEIR_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_ENVIRONMENT = re.compile(r"\$\{env:[A-Za-z_][A-Za-z0-9_]*\}")


class Verdict(StrEnum):
    """What became of a property."""

    SAME = "same"
    DIFFERS = "differs"
    NO_EQUAL = "no equal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the report says of one property of theirs, or of a default of theirs that nobody wrote down."""

    name: str
    value: str
    """As it may be shown."""
    verdict: Verdict
    setting: str = ""
    """Ours; empty where there is none."""
    ours: str = ""
    why: str = ""


Rule: TypeAlias = Callable[["Sheet", str], None]
"""Says a line or more about the property of this name. `ValueError`: what it holds cannot be read."""
Rules: TypeAlias = Mapping[str, Rule]
"""By name; one that ends with `*` is of all that begin like that, the longest first."""


@dataclass(slots=True)
class Sheet:
    """`given`: their properties, as they were read. Settings are gathered by our names."""

    given: Mapping[str, str]
    default_fs: str = ""
    """Hadoop's default file system; empty: unknown."""
    settings: dict[str, object] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    open: dict[str, str] = field(default_factory=dict)
    """Setting -> what has to be said there, by somebody who knows."""
    notes: list[str] = field(default_factory=list)
    """Of the whole, a sentence each."""
    said: set[str] = field(default_factory=set)

    # --- what is theirs ---------------------------------------------------------------------------

    def get(self, name: str, default: str = "") -> str:
        """What they say, without its blanks; `default` where they say nothing."""
        return self.given.get(name, "").strip() or default

    def names(self, prefix: str) -> Iterator[str]:
        """Of what begins so, in their order."""
        return (name for name in self.given if name.startswith(prefix))

    def is_true(self, name: str, *, default: bool = False) -> bool:
        return self.get(name, str(default)).lower() == "true"

    # --- what becomes of it -----------------------------------------------------------------------

    def same(self, name: str, setting: str = "", value: object = None, why: str = "") -> None:
        """It is said here as well; `value` is ours, by default as theirs."""
        self._say(name, Verdict.SAME, setting, value, why)

    def differs(self, name: str, setting: str, value: object, why: str) -> None:
        """Something near is said here; `value`: None where the setting stays as it is."""
        self._say(name, Verdict.DIFFERS, setting, value, why, ours=value is not None)

    def none(self, name: str, why: str) -> None:
        """Nothing here says it."""
        self._say(name, Verdict.NO_EQUAL, "", None, why, ours=False)

    def put(self, setting: str, value: object) -> None:
        """A setting that no line has to be said of."""
        value = without_secrets(value) if isinstance(value, str) else value
        table = next((one for one in PROPERTY_TABLES if setting.startswith(f"{one}.")), "")
        if not table:
            self.settings[setting] = value
            return
        properties = self.settings.setdefault(table, {})
        assert isinstance(properties, dict), table
        properties[setting.removeprefix(f"{table}.")] = value

    def must(self, setting: str, what: str) -> None:
        """Only somebody else can say this setting, unless something has."""
        if not self.says(setting):
            self.open.setdefault(setting, without_secrets(what))

    def says(self, setting: str) -> bool:
        """Return whether a setting, or a property in a table of them, has a value."""
        table = next((one for one in PROPERTY_TABLES if setting.startswith(f"{one}.")), "")
        properties = self.settings.get(table, {})
        inner = setting.removeprefix(f"{table}.")
        return setting in self.settings or (isinstance(properties, Mapping) and inner in properties)

    def note(self, sentence: str) -> None:
        """Said once, however often."""
        if (told := without_secrets(sentence)) not in self.notes:
            self.notes.append(told)

    def secret(self, name: str, setting: str, variable: str, why: str = "") -> None:
        """What this property holds goes into a variable, to which the setting refers."""
        reference = self.reference(name, self.get(name), variable)
        kept = reference == self.get(name)
        self.put(setting, reference)
        verdict = Verdict.SAME if kept else Verdict.DIFFERS
        why = why or (
            "" if kept else f"a secret stands nowhere itself: set {variable} for driver and workers"
        )
        self._add(Line(name=name, value=self.shown(name), verdict=verdict, setting=setting, ours=reference,
                       why=why))  # fmt: skip

    def reference(self, name: str, value: str, variable: str) -> str:
        """To a secret: theirs where it names a variable, else to this one."""
        if _ENVIRONMENT.fullmatch(value):
            return value
        where = " (theirs is a reference, too)" if _THEIR_REFERENCE.fullmatch(value) else ""
        self.open.setdefault(f"environment {variable}", f"what {name} holds{where}")
        return f"${{env:{variable}}}"

    # --- by rules ---------------------------------------------------------------------------------

    def apply(self, rules: Rules) -> None:
        """To all properties that nothing was said of."""
        prefixes = sorted((one[:-1] for one in rules if one.endswith("*")), key=len, reverse=True)
        for name in self.given:
            if name in self.said:
                continue
            rule = rules.get(name)
            if rule is None:
                prefix = next((one for one in prefixes if name.startswith(one)), None)
                rule = rules[f"{prefix}*"] if prefix is not None else None
            if rule is not None:
                self.follow(rule, name)

    def follow(self, rule: Rule, name: str) -> None:
        """One rule. What cannot be read is said to be so, without what it is."""
        try:
            rule(self, name)
        except ValueError:
            self.none(name, "cannot be taken over: it is not what such a property holds")

    def close(self) -> None:
        """What is left is unknown here."""
        for name in self.given:
            if name not in self.said:
                why = "no property that is known here: nothing was made of it"
                self._add(Line(name=name, value=self.shown(name), verdict=Verdict.UNKNOWN, why=why))
        self.open = {setting: what for setting, what in self.open.items() if not self.says(setting)}

    def shown(self, name: str) -> str:
        """Their value as it may be shown."""
        return shown(name, self.given[name]) if name in self.given else NOT_GIVEN

    def _say(
        self, name: str, verdict: Verdict, setting: str, value: object, why: str, *, ours: bool = True
    ) -> None:
        value = self.get(name) if ours and value is None else value
        free = setting.startswith(PROPERTY_TABLES)  # our own settings say by their kind what is a secret
        spelled, setting_name = _spelled(value), setting if free else ""
        told = shown(setting_name, spelled) if setting and ours else ""
        if setting and ours and holds_secret(setting_name, spelled):
            self.must(setting, f"what {name} holds, which may be a secret: write it in by hand")
            why = "it may hold a secret, which is not copied"
            verdict, setting, told = Verdict.NO_EQUAL, "", ""
        elif setting and ours:
            self.put(setting, value)
        self._add(
            Line(name=name, value=self.shown(name), verdict=verdict, setting=setting, ours=told, why=why)
        )

    def _add(self, line: Line) -> None:
        self.said.add(line.name)
        self.lines.append(replace(line, why=without_secrets(line.why)))


def shown(name: str, value: str) -> str:
    """A value as it may be shown: references are, secrets are not, and no more than a line of it."""
    bare = secrets.shown(name, value.strip())
    return bare if len(bare) <= VALUE_CHARACTERS_MAX else f"{bare[:VALUE_CHARACTERS_MAX]}…"


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


# --- rules that many sources have ---------------------------------------------------------------------


def no_equal(why: str) -> Rule:
    """Nothing here says it, and why that is."""
    return lambda sheet, name: sheet.none(name, why)


def as_it_is(setting: str, why: str = "") -> Rule:
    """The setting takes the value."""
    return lambda sheet, name: sheet.same(name, setting, why=why)


def made(setting: str, make: Callable[[str], object], why: str = "") -> Rule:
    """The setting takes what is made of the value."""
    return lambda sheet, name: sheet.same(name, setting, make(sheet.get(name)), why)


def near(setting: str, make: Callable[[str], object], why: str) -> Rule:
    """The setting takes what is made of the value, which does not mean quite the same."""
    return lambda sheet, name: sheet.differs(name, setting, make(sheet.get(name)), why)
