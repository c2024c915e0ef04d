"""Hadoop's default file system, in which a path without a scheme or host is. A shell: it reads files.

Source: Hadoop's core-default.xml, `fs.defaultFS`; `fs.default.name` is its name of before 0.21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

NAMES = ("fs.defaultFS", "fs.default.name")
PREFIXES = ("hoodie.hadoop.", "iceberg.hadoop.", "spark.hadoop.", "hadoop.", "")
FOLDERS = ("hadoop.conf.dir", "iceberg.hadoop-conf-dir", "hoodie.kafka.hadoop.conf.path")
FILE_BYTES_MAX = 4_194_304


def default_file_system(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the default file system as `scheme://authority`, or an empty string if it is not known here.

    Asked first: the sink's own properties, then core-site.xml in the folder that it names, then in
    `HADOOP_CONF_DIR`. A file that cannot be read, or is no XML, says nothing.
    """
    for name in NAMES:
        for prefix in PREFIXES:
            if found := given.get(f"{prefix}{name}", "").strip():
                return _address(found)
    folders = [*(given.get(name, "") for name in FOLDERS), environment.get("HADOOP_CONF_DIR", "")]
    for folder in filter(None, map(str.strip, folders)):
        properties = dict(_properties(Path(folder) / "core-site.xml"))
        for name in NAMES:
            if found := properties.get(name, "").strip():
                return _address(found)
    return ""


def _address(text: str) -> str:
    """Return an address without a trailing slash; a reference (`${…}`) is none."""
    scheme, separator, authority = text.partition("://")
    return "" if "${" in text or not separator else f"{scheme}://{authority.rstrip('/')}"


def _properties(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX)
        root = ElementTree.fromstring(content)
    except (OSError, ElementTree.ParseError):
        return
    for one in root.iter("property"):
        yield one.findtext("name", "").strip(), one.findtext("value", "").strip()
