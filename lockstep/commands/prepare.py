"""`lockstep prepare`: what every start needs, made once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from lockstep.commands.options import standard_options
from lockstep.driver.rehearsal import configuration
from lockstep.errors import EXIT_WELL, Failed
from lockstep.launch.class_archive import ClassArchive, options_to_make
from lockstep.launch.jars import find_java
from lockstep.launch.short_job import run_short_job
from lockstep.launch.submit import find_jars, find_spark_home, needs_of
from lockstep.output import Output, readable_size


@click.command("prepare")
@click.option("--again", is_flag=True, help="Make the archive even where there is one that fits.")
@standard_options
def command(output: Output, again: bool) -> int:
    """Download Hudi, and keep the classes that the driver loads in an archive.

    Every later start on this machine then takes about a quarter less CPU. Made for this Java and these jars,
    in $LOCKSTEP_CACHE or ~/.cache/lockstep: best while an image is built. Without it everything works.
    """
    packages = needs_of(configuration(Path("/"))).packages
    jars = find_jars(packages, {})
    if not jars:
        output.note(f"{', '.join(packages)} are downloaded")
        _rehearse("")
        jars = find_jars(packages, {})
        if not jars:
            raise Failed("Hudi's jars were downloaded, but are not in ~/.ivy2/jars: is spark.jars.ivy set?")
    archive = ClassArchive(find_java(), jars, find_spark_home())
    found, made = archive.find(), False
    if found is None or again:
        output.note("a job is rehearsed on an empty table, and its driver's classes are kept")
        found, made = _make(archive), True
    for other in archive.others(found):
        other.unlink(missing_ok=True)
        output.note(f"{other} is removed: it was made for other jars or another Java")
    size_bytes = found.stat().st_size
    document = {
        "jars": [str(jar) for jar in jars],
        "archive": str(found),
        "size_bytes": size_bytes,
        "made": made,
    }
    was = "made" if made else "there already"
    output.document(document, f"Prepared: {found} ({readable_size(size_bytes)}) is {was}.")
    return EXIT_WELL


def _make(archive: ClassArchive) -> Path:
    """The file appears whole or not at all. Raises `Failed`."""
    archive.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.folder, prefix="making-") as folder:
        made = Path(folder) / "made.jsa"
        _rehearse(options_to_make(made))
        if not made.is_file():
            raise Failed("The JVM wrote no archive of its classes: HotSpot, Java 17 or newer, can.")
        return archive.keep(made)


def _rehearse(java_options: str) -> None:
    with tempfile.TemporaryDirectory(prefix="lockstep-prepare-") as folder:
        status, last = run_short_job(
            configuration(Path(folder)), Path(folder), ["--rehearse"], java_options=java_options
        )
    if status != EXIT_WELL:
        raise Failed(f"The rehearsal ended with {status}: {last}")
