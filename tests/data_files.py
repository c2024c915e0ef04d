"""The files that hold a table's rows, in a folder."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path


def data_files(table: Path, pattern: str = "*.parquet") -> list[Path]:
    """Without what `.hoodie` holds, into which nobody looks: folders of markers go while a table is used."""
    found: list[Path] = []
    for folder, folders, names in os.walk(table):
        folders[:] = sorted(set(folders) - {".hoodie"})
        found += [Path(folder, name) for name in sorted(names) if fnmatchcase(name, pattern)]
    return found
