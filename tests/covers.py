"""Code that each kind of recorded proof covers, by the proof's name.

A cover is a list of paths: files, folders, and patterns in which `*` does not cross a `/`. Evidence carries
its cover and the cover's digest (`tests/evidence.py`), so that `tools/staleness.py` can compare them later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PRODUCT = (
    "control_topic",
    "coordinator",
    "lockstep",
    "native",
    "participant",
    "proto",
    "pyproject.toml",
    "table",
)
CORES = ("control_topic", "coordinator", "participant/*.py", "table/*.py", "table/memory", "table/service")


@dataclass(frozen=True, slots=True)
class Cover:
    """Paths that one kind of proof covers.

    `only_loaded`: a proof that is recorded covers the modules that its process has loaded instead.
    """

    paths: tuple[str, ...]
    only_loaded: bool = False


_SIMULATOR = Cover((*CORES, "tests/simulation"), only_loaded=True)
_REAL_PARTS = Cover((*PRODUCT, "tests/*.py", "tests/azure", "tests/faults"))
_BENCHES = Cover((*PRODUCT, "bench"))
DEFAULT = Cover((*PRODUCT, "tests"))
"""Cover of a proof that the registry does not know."""

COVERS: Mapping[str, Cover] = {
    "simulation": _SIMULATOR,
    "mutants": _SIMULATOR,
    "bucket": Cover(("table", "control_topic", "tests/simulation/bucket"), only_loaded=True),
    "coverage": Cover(
        (
            *CORES,
            "tests/coverage_of_cores.py",
            "tests/golden",
            "tests/simulation",
            "tests/unit/*.py",
            "tests/unit/coordinator",
            "tests/unit/cores",
            "tests/unit/participant/*.py",
        )
    ),
    "spec": Cover(("docs/spec/*.pml", "tools/spec.py", "tools/spec_worlds.py")),
    "fuzz": Cover(
        (*PRODUCT, "tests/*.py", "tests/fuzz", "tests/unit/participant/records/columns/made.py"),
    ),
    "fuzz-native": Cover(("native", "tests/fuzz", "tests/proto_files.py")),
    "seeded": Cover((*PRODUCT, "tests")),
    "suite": Cover(("pyproject.toml", "tests")),
    "tier-cores": _SIMULATOR,
    "tier-shells": Cover((*PRODUCT, "tests")),
    "scenarios": _REAL_PARTS,
    "faults": _REAL_PARTS,
    "soak": _REAL_PARTS,
    "scale": Cover((*CORES, "bench/scale.py"), only_loaded=True),
    "bench": _BENCHES,
    "bench-decoding": Cover(
        (
            *("native", "participant/records", "pyproject.toml", "table/rows.py", "table/schema.py"),
            *("bench/decoding.py", "bench/encodings.py", "bench/workloads.py"),
        )
    ),
}
"""By name of the proof: the longest of these that it is, or that it begins with before a `-`."""


def cover_of(name: str) -> Cover:
    """Return the cover of the proofs of this name."""
    while name not in COVERS and name:
        name = name.rpartition("-")[0]
    return COVERS.get(name, DEFAULT)
