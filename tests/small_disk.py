"""A file system of a test's own, which can be full. Needs root, in a place that lets it mount."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TMPFS_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024


class NoMount(RuntimeError):
    """The test may not mount: run it as root in a place that lets it."""


def mount(*arguments: str) -> None:
    """Raises `NoMount`."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoMount(f"mount {' '.join(arguments)}: {done.stderr.strip()}: this needs root")


def unmount(folder: Path) -> None:
    """Though files are open there."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """The folder, which is made, is a tmpfs of `TMPFS_BYTES`. Raises `NoMount`."""
    folder.mkdir(parents=True)
    mount("-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "lockstep-test", str(folder))
    try:
        yield
    finally:
        unmount(folder)


@contextmanager
def filled(folder: Path, *, left_bytes: int = 0) -> Iterator[None]:
    """So much is left on the folder's disk, by default not one byte, until the ballast goes."""
    ballast = folder / ".ballast"
    with ballast.open("wb", buffering=0) as file:
        chunk = bytes(CHUNK_BYTES)
        while chunk:
            try:
                file.write(chunk)
            except OSError:
                chunk = chunk[: len(chunk) // 2]
        file.truncate(max(0, os.fstat(file.fileno()).st_size - left_bytes))
    try:
        yield
    finally:
        ballast.unlink()
