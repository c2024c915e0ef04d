"""Which version of a library is installed here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def version_of(library: str) -> str | None:
    """None where nothing says it: it is not installed, or shipped as files, as Lockstep itself may be."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None
