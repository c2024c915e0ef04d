"""What plans of compactions and of clusterings have in common: whose they are, and the files they made."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from table.hudi.session import Session
from table.state import PREFIX

OWNER = PREFIX + "compaction"
"""In a plan's metadata: the pipeline whose driver carries it out."""


def remove_files(session: Session, folders: Iterable[str], instant: str) -> None:
    """Remove base files and markers, in these table partitions, of an instant that is on no timeline."""
    for folder in folders:
        for path in (Path(session.path) / folder).glob(f"*_{instant}.parquet"):
            path.unlink(missing_ok=True)
    shutil.rmtree(Path(session.path) / ".hoodie" / ".temp" / instant, ignore_errors=True)
