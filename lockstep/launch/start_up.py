"""How a Python process of ours starts sooner. Standard library only; used before anything else is imported.

Spark puts its Python sources first on the path, as zip files, and what comes from a zip is compiled anew at
every start: the whole of pyspark, by the driver and by what forks the workers. Where Spark is the installed
pyspark, the same sources are beside it, compiled once.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCES = ("python", "lib")
"""Where a Spark keeps its zip files."""


def without_zips(path: Sequence[str], spark_home: str) -> list[str]:
    """`sys.path` without the zip files of which the very same version is installed on the path."""
    home = Path(spark_home)
    if not spark_home or not (home / "__init__.py").is_file() or str(home.parent) not in path:
        return list(path)
    zips = {str(home.joinpath(*SOURCES, "pyspark.zip"))}
    for source in home.joinpath(*SOURCES).glob("py4j-*-src.zip"):
        release = source.name.removesuffix("-src.zip")
        if home.with_name(f"{release}.dist-info").is_dir():
            zips.add(str(source))
    return [entry for entry in path if entry not in zips]


def without_here(path: Sequence[str], here: str) -> list[str]:
    """`sys.path` without the folder that `python -m` puts first: what lies in it is nobody's module."""
    return list(path[1:] if path and path[0] == here else path)


@contextmanager
def importing() -> Iterator[None]:
    """Modules are imported inside: nothing of them is garbage, and none of it is looked at again.

    numpy, which others import, would start a thread for each core: they spin for a while, and nothing here
    multiplies matrices.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
