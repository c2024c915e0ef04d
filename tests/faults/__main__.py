"""`python -m tests.faults`: the catalogue, single scenarios, or cycles of random kills and pauses."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

# Spark's JVM is forked from processes that use gRPC; gRPC's fork handlers break that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click

from table.store.location import AZURE, FILE, GOOGLE, HDFS, S3
from tests import evidence
from tests.faults.cycles import Plan, run_cycles
from tests.faults.play import Played, load_catalogue, play_all, prepare, say
from tests.faults.scenario import Scenario

Figures = dict[str, Any]
"""What one scenario came to, as the evidence has it."""

STORES = {"file": FILE, "s3": S3, "hdfs": HDFS, "gs": GOOGLE, "azure": AZURE}
"""As the command line has them."""
EVIDENCE = {store: "scenarios" if store == FILE else f"scenarios-{name}" for name, store in STORES.items()}
COMMANDS = {
    store: "make faults" + (f" STORE={name}" if store != FILE else "") for name, store in STORES.items()
}
"""By where the table is."""


@click.command()
@click.option("--list", "listing", is_flag=True, help="Show the scenarios and play none.")
@click.option("--only", "names", multiple=True, metavar="NAME", help="Play this scenario; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Play every scenario once; leaves scenarios.json.")
@click.option("--cycles", type=click.IntRange(min=1), help="So many random faults; leaves their figures.")
@click.option("--seed", type=int, help="The seed of the cycles. Default: a random one, which is printed.")
@click.option("--records", type=int, default=0, help="Go on loading until there are so many records.")
@click.option("--per-second", type=int, default=10_000, show_default=True, help="Records a second.")
@click.option(
    "--kind",
    type=click.Choice(["insert", "upsert"]),
    default="insert",
    show_default=True,
    help="Of the table of --cycles.",
)
@click.option(
    "--store",
    type=click.Choice(list(STORES)),
    default="file",
    show_default=True,
    help="Where the table is: a folder, or on a server of that kind, of which --all leaves scenarios-….json.",
)
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    listing: bool,
    names: tuple[str, ...],
    everything: bool,
    cycles: int | None,
    seed: int | None,
    records: int,
    per_second: int,
    kind: str,
    store: str,
    folder: Path | None,
) -> None:
    """Faults on the real parts: real broker, real spark-submit, real Hudi."""
    prepare()
    scheme = STORES[store]
    catalogue = load_catalogue(scheme)
    folder = folder or Path(tempfile.mkdtemp(prefix="faults-"))
    if cycles is not None:
        plan = Plan(
            seed=secrets.randbelow(2**32) if seed is None else seed,
            cycles=cycles,
            records=records,
            per_second=per_second,
            upserts=kind == "upsert",
        )
        sys.exit(0 if run_cycles(folder, plan) else 1)
    if listing or not (names or everything):
        for one in catalogue.values():
            say(f"{one.group:14} {one.name:60} {one.fault} -> {one.expected}")
        return
    unknown = sorted(set(names) - catalogue.keys())
    if unknown:
        raise click.UsageError(f"there is no scenario {', '.join(unknown)}: --list shows them")
    if everything:
        done = _unfinished(scheme)
        well = _play(folder, catalogue, catalogue.keys() - done.keys(), store=scheme, so_far=done)
    else:
        well = _play(folder, catalogue, names, store=scheme, so_far=_recorded(scheme))
    sys.exit(0 if well else 1)


def _unfinished(store: str) -> dict[str, Figures]:
    """What a run of this very code has found to be as expected so far, where it is to be gone on with."""
    found = evidence.unfinished(EVIDENCE[store]) or {"each": []}
    return {one["name"]: one for one in found["each"] if one["outcome"] == "as expected"}


def _recorded(store: str) -> dict[str, Figures]:
    """What is on record, which single scenarios that are played anew are put into."""
    return {one["name"]: one for one in evidence.rows(EVIDENCE[store], "each")}


def _play(
    folder: Path,
    catalogue: Mapping[str, Scenario],
    names: Collection[str],
    *,
    store: str,
    so_far: Mapping[str, Figures],
) -> bool:
    """What each came to is kept at once, with the commit that it was played at; those of `names` anew."""
    figures = dict(so_far)
    anew = [one for one in catalogue.values() if one.name in names]
    covers = evidence.cover_paths(EVIDENCE[store])

    def keep(played: Played) -> None:
        figures[played.scenario.name] = {**played.figures(), **evidence.origin(covers)}
        each = [figures[name] for name in catalogue if name in figures]
        evidence.write(
            EVIDENCE[store],
            command=COMMANDS[store],
            passed=len(each) == len(catalogue) and all(one["outcome"] == "as expected" for one in each),
            figures={
                "scenarios": len(catalogue),
                "played": len(each),
                "as_expected": sum(one["outcome"] != "failed" for one in each),
                "within_limit": sum(one["outcome"] == "as expected" for one in each),
                "each": each,
            },
        )

    done = play_all(folder, anew, keep, store=store)
    return not any(one.error or one.slow for one in done)


if __name__ == "__main__":
    main()
