"""`python -m tools.proofs` lists the recorded proofs that are older than their code.

For each it shows the commit and the date of the record (of the oldest stale row, if the rows have their own),
how many of the covered files differ since, and the command that records it again. Stale proofs are allowed:
the exit code is 0. With `--must NAME …` it is 1 if one of these is stale, or if its age is unknown.

The number of files needs git and the recorded commit, which a shallow clone does not have; the age does not.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.staleness import Age, Origin, age, age_of, changed_files, origins, read_proofs  # noqa: E402

COMMAND = "python -m tools.proofs"
TITLES = ("stale proof", "commit", "recorded", "rows", "files changed", "record it again with")


@dataclass(frozen=True, slots=True)
class StaleProof:
    """One line of the list. `commit`, `at`: of the oldest stale row; `files`: None if unknown."""

    name: str
    commit: str
    at: str
    rows: int
    stale_rows: int
    files: int | None
    command: str

    def cells(self) -> tuple[str, ...]:
        """Return the texts of its columns."""
        rows = f"{self.stale_rows} of {self.rows}" if self.rows > 1 else ""
        files = "unknown" if self.files is None else f"{self.files:,}"
        return (self.name, self.commit, self.at.removesuffix(" UTC"), rows, files, self.command)


def find_stale_proofs(proofs: Mapping[str, Mapping[str, Any]]) -> list[StaleProof]:
    """Return the stale ones of these recorded proofs, in the order of their names."""
    found = []
    for name, kept in sorted(proofs.items()):
        every = origins(kept)
        stale = [origin for origin in every if age(origin) is Age.STALE]
        if stale:
            oldest = min(stale, key=lambda origin: origin.at)
            found.append(
                StaleProof(
                    name=name,
                    commit=oldest.commit,
                    at=oldest.at,
                    rows=len(every),
                    stale_rows=len(stale),
                    files=_count_files(stale),
                    command=f"RECORD=1 {kept['command']}",
                )
            )
    return found


def _count_files(stale: Iterable[Origin]) -> int | None:
    """Return how many covered files differ since the records, each counted once; None if that is unknown."""
    changed: set[str] = set()
    for origin in dict.fromkeys(Origin(one.commit, "", one.paths, None) for one in stale):
        files = changed_files(origin)
        if files is None:
            return None
        changed |= files
    return len(changed)


def format_list(proofs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text that is printed: a table of the stale ones of these proofs, and how many they are."""
    stale = find_stale_proofs(proofs)
    lines = []
    if stale:
        rows = [TITLES, *(one.cells() for one in stale)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
        lines = [*("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows), ""]
    lines.append(f"{len(stale)} of {len(proofs)} recorded proofs are older than their code.")
    unknown = [name for name, kept in proofs.items() if age_of(kept) is Age.UNKNOWN]
    if unknown:
        lines.append(f"Of unknown age, as git does not have their commits: {', '.join(unknown)}.")
    return "\n".join(lines)


def format_names(proofs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a paragraph that only names the stale ones of these proofs."""
    names = [one.name for one in find_stale_proofs(proofs)]
    text = f"{len(names)} of {len(proofs)} recorded proofs are older than their code"
    text = f"{text}: {', '.join(names)}." if names else f"{text}."
    unknown = [name for name, kept in proofs.items() if age_of(kept) is Age.UNKNOWN]
    if unknown:
        text += f" Of unknown age: {', '.join(unknown)}."
    return textwrap.fill(f"{text} Details: {COMMAND}" if names or unknown else text, width=110)


def describe_failures(proofs: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """Return a sentence for each of these proofs that is not shown to be of the code as it is."""
    sentences = []
    for name in names:
        kept = proofs[name]
        found = age_of(kept)
        if found is Age.STALE:
            sentences.append(
                f"{name} is stale: its code changed. Record it again: RECORD=1 {kept['command']}"
            )
        elif found is Age.UNKNOWN:
            sentences.append(f"{name} is of unknown age: git does not have its commit {kept['commit']}.")
    return sentences


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__.partition("\n")[0])
    parser.add_argument("--must", metavar="NAME", nargs="+", default=[], help="fail if one of these is stale")
    parser.add_argument("--brief", action="store_true", help="only name them")
    asked = parser.parse_args(arguments)
    proofs = read_proofs()
    if strange := sorted(set(asked.must) - proofs.keys()):
        parser.error(f"no proof is recorded as {', '.join(strange)}; there are {', '.join(proofs)}")
    if asked.must:
        sentences = describe_failures(proofs, asked.must)
        sys.stderr.write("".join(f"{one}\n" for one in sentences))
        return 1 if sentences else 0
    sys.stdout.write(f"{format_names(proofs) if asked.brief else format_list(proofs)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
