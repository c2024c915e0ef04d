"""A secret, however a log, a document, an address or a header spells it. Pure.

Each of its characters may stand as itself, behind any number of backslashes, as an escape of JSON, Java,
Python, C, an address or HTML, on its own and whatever its neighbours stand as.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from html.entities import codepoint2name

PIECE_MAX = 64
"""A longer secret is looked for piece by piece: what is found of it goes."""
BASE64_MIN = 8
"""Bytes. The inner part of fewer is so short that it stands for anything."""
ANCHOR_MIN = 3
UNIT_MAX = 40
"""Characters that one character of a secret may take, for where to look around an anchor."""

_RUN = re.compile(r"[A-Za-z0-9]+")
_UNITS = re.compile(r"\\+|[^\\]", re.DOTALL)
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\a": "a", "\0": "0"}
_LETTER = r"3[0-9]|[46][1-9a-f]|[57][0-9a]"
_ESCAPED = re.compile(
    rf"%(?:25)*+({_LETTER})|\\(?:u+00|x)({_LETTER})|&(?:amp;)*+#(?:x0*({_LETTER})|0*([0-9]{{2,3}}));",
    re.IGNORECASE,
)
"""A letter or a digit that does not stand as itself, which is rare."""


class Spelled:
    """One text that is looked for, `PIECE_MAX` characters at most."""

    def __init__(self, text: str, *, is_base64: bool = False) -> None:
        self._text, self._is_base64 = text, is_base64
        found = max(_RUN.finditer(text), key=lambda run: run.end() - run.start(), default=None)
        self.anchor = found.group() if found is not None else ""
        before, after = (found.start(), len(text) - found.end()) if found is not None else (0, 0)
        self._before, self._after = (before + 1) * UNIT_MAX * (before > 0) + 8, (after + 1) * UNIT_MAX

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled where something like it was found."""
        units = _UNITS.findall(self._text)
        behind = [False, *(one.startswith("\\") for one in units)]
        spelled = "".join(
            _unit(one, first=number == 0, bare=bare, is_base64=self._is_base64)
            for number, (one, bare) in enumerate(zip(units, behind, strict=False))
        )
        return re.compile(spelled)

    def hidden(self, text: str, by: str) -> str:
        """The text without it, but for where its letters are escaped."""
        if len(self.anchor) < ANCHOR_MIN:
            return self.pattern.sub(by, text)
        at, done, parts = text.find(self.anchor), 0, []
        while at >= 0:
            end = at + len(self.anchor) + self._after
            start = max(done, at - self._before)
            while start > done and text[start - 1] == "\\":  # a match begins where a run of them does
                start -= 1
            found = self.pattern.search(text, start, end)
            if found is None:
                at = text.find(self.anchor, at + 1)
                continue
            parts += [text[done : found.start()], by]
            done = found.end()
            at = text.find(self.anchor, max(at, done))
        return "".join([*parts, text[done:]]) if parts else text


def sought(secret: str) -> Iterator[Spelled]:
    """What is looked for, of a secret that is longer than a word."""
    for one in {secret, unicodedata.normalize("NFC", secret)}:
        for piece in _pieces(one):
            yield Spelled(piece)
    for inner in _inner_base64(secret):
        for piece in _pieces(inner):
            yield Spelled(piece, is_base64=True)


def hexadecimal(secret: str) -> set[str]:
    """As it stands in a dump of bytes."""
    raw = _raw(secret).hex()
    return {raw, raw.upper()}


def without(text: str, wanted: Iterable[Spelled], by: str) -> str:
    """The text with each of them replaced, in this order."""
    wanted = list(wanted)
    for one in wanted:
        text = one.hidden(text, by)
    return _without_escaped(text, wanted, by)


def _without_escaped(text: str, wanted: list[Spelled], by: str) -> str:
    """Line by line, those that hold an escaped letter: without its anchor a secret is not found above."""
    parts, done = [], 0
    while found := _ESCAPED.search(text, done):
        start = text.rfind("\n", done, found.start()) + 1 or done
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        line = text[start:end]
        read = _ESCAPED.sub(_letter, line)
        for one in wanted:
            if one.anchor in read:
                line = one.pattern.sub(by, line)
        parts += [text[done:start], line]
        done = end
    return "".join([*parts, text[done:]]) if parts else text


def _letter(found: re.Match[str]) -> str:
    number = int(found[4]) if found[4] else int(found[1] or found[2] or found[3], 16)
    return chr(number) if number < 128 else found.group()


def _pieces(text: str) -> list[str]:
    """None of them short, where there are several."""
    count = -(-len(text) // PIECE_MAX)
    size = -(-len(text) // max(1, count))
    return [text[start : start + size] for start in range(0, len(text), size)] if text else []


def _inner_base64(secret: str) -> set[str]:
    """What does not depend on what is before and behind, at each of three alignments."""
    found = set()
    for raw in {_raw(secret), *_latin(secret)}:
        if len(raw) < BASE64_MIN:
            continue
        for before in range(3):
            whole = base64.b64encode(bytes(before) + raw).decode()
            found.add(whole[-(-8 * before // 6) : 8 * (before + len(raw)) // 6])
    return found


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _latin(text: str) -> list[bytes]:
    try:
        return [text.encode("latin-1")]
    except UnicodeEncodeError:
        return []


def _unit(unit: str, *, first: bool, bare: bool, is_base64: bool) -> str:
    """A pattern for one character, or a run of backslashes. `bare`: backslashes before it are gone already.

    Each branch starts with a literal character: a search skips what none of them starts with. The `first`
    unit matches backslashes only from the start of their run: from each of them it would read the run again.
    """
    run = r"\\(?<!\\\\)" if first else r"\\"
    character = unit[0]
    count = "" if len(unit) == 1 else f"{{{len(unit)}}}"
    byte, code = _each(character, _percent), _codes(character)
    escaped = [*code, *(_each(character, _byte))]
    entity = rf"&(?:amp;)*+(?:{_entity(character)})"
    if character == "\\":
        inner = "|".join([*(rf"{run}\\*+{one}" for one in code), *byte, entity])
        return rf"(?:(?:{inner}){count}|{run}\\{{{len(unit) - 1},}}+)"
    branches = [*byte, rf"{run}\\*+(?:{'|'.join([*escaped, *_plain(character, is_base64=is_base64)])})"]
    if bare:
        branches += escaped
    if character == "&":
        branches.append(rf"&(?:amp;)*+(?:{_entity(character)})?+")
    elif character == "%":
        branches += [entity, "%(?:25)*+"]
    else:
        branches += [entity, *_plain(character, is_base64=is_base64)]
    if character == "'":  # a shell's
        branches += [r"'\\*+\"\\*+'\\*+\"\\*+'", r"'\\++'\\*+'"]
    return f"(?:{'|'.join(branches)})"


def _plain(character: str, *, is_base64: bool) -> list[str]:
    """As itself, and as who reads other bytes than were written, or writes accents apart."""
    found = {character, unicodedata.normalize("NFD", character)}
    if character.isspace():
        found |= {" ", "+"}
    if character == "\n":
        found.add("\r\n")
    if is_base64:
        found |= {"+": {"-"}, "/": {"_"}}.get(character, set())
    if character >= "\x80":
        for raw in (_raw(character), *_latin(character)):
            found |= {raw.decode("latin-1"), raw.decode("ascii", "surrogateescape")}
    doubled = [re.escape(character * 2)] if character in "'\"" else []
    return [*(re.escape(one) for one in sorted(found, key=len, reverse=True)), *doubled]


def _codes(character: str) -> list[str]:
    """What is behind the backslash, of a character; of one of two halves, both."""
    raw = character.encode("utf-16-be", "surrogatepass").hex()
    halves = [raw[start : start + 4] for start in range(0, len(raw), 4)]
    codes = [
        r"\\++".join(f"u+{_any_case(half)}" for half in halves),
        f"U{_any_case(f'{ord(character):08x}')}",
    ]
    latin = [rf"u+{_any_case(f'dc{byte:02x}')}" for raw in _latin(character) for byte in raw if byte >= 128]
    return [*codes, *latin, *_LETTERS.get(character, "")]


def _each(character: str, spell: Callable[[bytes], str]) -> list[str]:
    """Its bytes, by `spell`, in UTF-8 and in Latin-1."""
    return [spell(raw) for raw in dict.fromkeys([_raw(character), *_latin(character)])]


def _percent(raw: bytes) -> str:
    return "".join(f"%(?:25)*+{_any_case(f'{byte:02x}')}" for byte in raw)


def _byte(raw: bytes) -> str:
    """What is behind the backslash: hexadecimal, octal."""
    return r"\\++".join(f"(?:x{_any_case(f'{byte:02x}')}|{byte:03o})" for byte in raw)


def _entity(character: str) -> str:
    code = ord(character)
    name = codepoint2name.get(code) or {"'": "apos"}.get(character)
    named = [f"{name};"] * bool(name)
    return "|".join([*named, f"#0*{code};", f"#[xX]0*{_any_case(f'{code:x}')};"])


def _any_case(digits: str) -> str:
    return "".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in digits)
