"""Whether the table's store can be used from here, before anything relies on it: soon, and in a sentence."""

from __future__ import annotations

from lockstep.errors import Failed
from table.errors import TableError
from table.store.probe import probe
from table.store.settings import StoreSettings


def tried(path: str, storage: StoreSettings | None) -> list[tuple[str, str]]:
    """What was tried, and why it failed. Runs on an executor, too."""
    try:
        return [(one.what, one.why_not) for one in probe(path, storage)]
    except (TableError, OSError) as error:
        return [("reach it", str(error))]


def used(done: list[tuple[str, str]], path: str, storage: StoreSettings | None) -> str:
    """What was done, as a sentence. Raises `Failed` that names all that could not be, each reason once."""
    reasons: dict[str, list[str]] = {}
    for what, why in done:
        if why:
            reasons.setdefault(why, []).append(what)
    if reasons:
        failed = "; ".join(f"{', '.join(whats)}: {why}" for why, whats in reasons.items())
        shared = (
            "; see that the folder is shared with the executors and that their user may write to it"
            if storage is None
            else ""
        )
        raise Failed(f"under {path} it is not possible to {failed}{shared}")
    return f"under {path} it is possible to {', '.join(what for what, _ in done)}"


def check_use(path: str, storage: StoreSettings | None) -> str:
    """Raises `Failed`."""
    return used(tried(path, storage), path, storage)
