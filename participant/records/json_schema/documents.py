"""Schemas of JSON as a registry tells them, and what of them a part is, bounded in time and memory.

A part holds together with all that it refers to by `$ref`, and with all of its `allOf`: what is asked of it
is asked of each. `$ref` leads within the schema, or to a schema that the registry has for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urljoin

from participant.records.by_schema.following import NoColumn
from table.schema import SchemaError

LEVELS_MAX = 64
"""Of fields within fields, and of references and `allOf` on the way to one of them."""
LOOKS_MAX = 20_000
"""A part is looked at as often as it is referred to; so are its fields, and its lists' members."""
REFS_MAX = 200
REF_CHARS_MAX = 2_000
SHOWN_CHARS_MAX = 100


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A schema, whole. `name`: by which others refer to it."""

    name: str
    root: Any

    @property
    def address(self) -> str:
        """That it gives itself."""
        said = self.root.get("$id", self.root.get("id")) if isinstance(self.root, dict) else None
        return said.rstrip("#") if isinstance(said, str) and len(said) <= REF_CHARS_MAX else ""


Place = tuple[int, str]
"""A document, by its identity, and a pointer into it."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Of a document. `inside`: to where `$ref` has led on the way to it."""

    node: Any
    document: Document
    inside: frozenset[Place] = frozenset()

    def of(self, node: Any) -> Part:
        """Something in it."""
        return Part(node, self.document, self.inside)

    def value(self, name: str, kind: type) -> Any:
        """Of a keyword; None where it is not there, or no such value."""
        found = self.node.get(name) if isinstance(self.node, dict) else None
        return found if isinstance(found, kind) and not (kind is int and isinstance(found, bool)) else None


@dataclass(slots=True)
class Whole:
    """What holds of a value, all at once."""

    parts: list[Part] = field(default_factory=list)
    choices: list[list[Part]] = field(default_factory=list)
    """Of each of them one holds as well."""
    never: bool = False
    """Whether there is no such value."""

    def first(self, name: str, kind: type = str) -> Any:
        """Of a keyword, as the first part has it."""
        found = (part.value(name, kind) for part in self.parts)
        return next((one for one in found if one is not None), None)


class Documents:
    """A schema and those that it refers to. Raises `SchemaError` for what is none."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._left = LOOKS_MAX
        self._others: dict[str, Document] = {}
        known: dict[str, str] = {}
        for name, text in map(name_and_text, texts[:-1]):
            if known.setdefault(name, text) != text:
                raise SchemaError(f"two schemas that it refers to are both called {shown(name)}")
            document = Document(name, _parsed(text))
            for one in filter(None, (name, document.address)):
                self._others.setdefault(one, document)
        self._root = Document("", _parsed(texts[-1]))
        if not isinstance(self._root.root, dict | bool):
            raise SchemaError("it is no JSON Schema, but other JSON")

    @property
    def root(self) -> Part:
        return Part(self._root.root, self._root, frozenset({(id(self._root), "")}))

    def look(self, path: str, count: int = 1) -> None:
        """So much is looked at. Raises `NoColumn` where it is too much in all."""
        self._left -= count
        if self._left < 0:
            raise NoColumn(f"{at(path)}the JSON Schema is too large: with all that it refers to, more than "
                           f"{LOOKS_MAX:,} parts")  # fmt: skip

    def whole(self, parts: Sequence[Part], path: str) -> Whole:
        """All that holds where these parts do. Raises `NoColumn`."""
        found = Whole()
        for part in parts:
            self._add(part, path, found, 0)
        return found

    def _add(self, part: Part, path: str, found: Whole, level: int) -> None:
        self.look(path)
        if level > LEVELS_MAX:
            raise NoColumn(f"{at(path)}more than {LEVELS_MAX} references and allOf one within another")
        if isinstance(part.node, bool):
            found.never |= not part.node
            return
        if not isinstance(part.node, dict):
            raise NoColumn(f"{at(path)}what stands there is no JSON Schema")
        found.parts.append(part)
        if "$ref" in part.node:
            self._add(self._referred(part, path), path, found, level + 1)
        for one in part.value("allOf", list) or ():
            self._add(part.of(one), path, found, level + 1)
        for name in ("oneOf", "anyOf"):
            choices = part.value(name, list) or []
            self.look(path, len(choices))
            real = [part.of(one) for one in choices if not _is_null(one)]
            if len(real) == 1:
                self._add(real[0], path, found, level + 1)
            elif choices:
                found.choices.append(real)

    def _referred(self, part: Part, path: str) -> Part:
        ref = part.node["$ref"]
        if not isinstance(ref, str) or len(ref) > REF_CHARS_MAX:
            raise NoColumn(f"{at(path)}a $ref that is no short text")
        base, _, pointer = ref.partition("#")
        document = self._document(part.document, base)
        pointer = unquote(pointer)
        node = _pointed(document.root, pointer) if document is not None else None
        if document is None or node is None:
            raise NoColumn(f"{at(path)}$ref {shown(ref)} leads to nothing that is known")
        place = (id(document), pointer)
        if place in part.inside:
            raise NoColumn(
                f"{at(path)}what $ref {shown(ref)} leads to holds itself, and so goes into no column"
            )
        if len(part.inside) >= REFS_MAX:
            raise NoColumn(f"{at(path)}more than {REFS_MAX} references lead there, one from another")
        return Part(node, document, part.inside | {place})

    def _document(self, here: Document, base: str) -> Document | None:
        if not base:
            return here
        for name in _addresses(here.address, base):
            if name and name == here.address:
                return here
            if name in self._others:
                return self._others[name]
            if name and name == self._root.address:
                return self._root
        return None


def at(path: str) -> str:
    """What a sentence about a field begins with."""
    return f"field {path[: 10 * SHOWN_CHARS_MAX]}: " if path else ""


def shown(text: str) -> str:
    """For people, who do not want all of it."""
    return repr(text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…")


def spelled(text: str, name: str) -> str:
    """What is told of a schema: of one that others refer to, by which name."""
    return json.dumps([name, text]) if name else text


def name_and_text(told: str) -> tuple[str, str]:
    """Of one that others refer to. Raises `SchemaError` where it was not spelled so."""
    try:
        name, text = json.loads(told)
    except (ValueError, TypeError, RecursionError):
        raise SchemaError("what it refers to was not told with its name") from None
    return str(name), str(text)


def alike(one: str, other: str) -> bool:
    """Whether two of what is told are one schema."""
    try:
        first, second = json.loads(one), json.loads(other)
        if isinstance(first, list) and isinstance(second, list):
            return bool(first[0] == second[0] and json.loads(first[1]) == json.loads(second[1]))
        return bool(first == second)
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError("it is no JSON that can be read") from None


def _is_null(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    return node.get("type") in ("null", ["null"]) or node.get("enum") == [None] or (
        "const" in node and node["const"] is None
    )  # fmt: skip


def _addresses(address: str, base: str) -> Iterator[str]:
    yield base
    if address:
        try:
            yield urljoin(address, base)
        except ValueError:
            return


def _pointed(root: Any, pointer: str) -> Any:
    """What a JSON Pointer leads to; None where that is nothing."""
    if pointer and not pointer.startswith("/"):
        return None
    node = root
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if name.isascii() and name.isdigit() and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
        if node is None:
            return None
    return node
