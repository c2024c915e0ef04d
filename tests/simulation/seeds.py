"""Seeds that once found something, kept in `seeds.txt`: a seed and what it found, one a line."""

from __future__ import annotations

from pathlib import Path

SEEDS = Path(__file__).with_name("seeds.txt")


def kept_seeds() -> dict[int, str]:
    """Seed -> what it found. Raises `ValueError` for a line that is neither a seed nor a comment."""
    kept: dict[int, str] = {}
    lines = SEEDS.read_text(encoding="utf-8").splitlines() if SEEDS.exists() else []
    for line in lines:
        seed, _hash, found = line.partition("#")
        if seed.strip():
            kept[int(seed)] = found.strip()
    return kept
