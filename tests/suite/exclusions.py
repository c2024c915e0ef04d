"""Markers that keep a test out of `make test` or let it fail, as the source of its file says. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_EXCLUDES = re.compile(r"\bmark\.(nightly|skip|xfail)\b|\b(importorskip)\(|\bpytest\.(skip)\(")
"""`skipif` depends on the machine: the summary of a run names the bugs whose tests were skipped."""


def exclusions(source: str, test: str) -> set[str]:
    """Return the markers and calls that exclude a test: those of the test and of its file."""
    tree = ast.parse(source)
    named = dict(_assignments(tree))
    texts = [named.get("pytestmark", "")]
    texts += [ast.unparse(node) for node in tree.body if isinstance(node, ast.Expr)]
    texts += [
        ast.unparse(decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == test
        for decorator in node.decorator_list
    ]
    texts += [named[word] for text in list(texts) for word in re.findall(r"\w+", text) if word in named]
    return {next(filter(None, found)) for text in texts for found in _EXCLUDES.findall(text)}


def _assignments(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    text = ast.unparse(node.value)
                    yield target.id, text
                    if "importorskip(" in text:
                        yield "pytestmark", text
