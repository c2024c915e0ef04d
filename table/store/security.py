"""What a cluster wants of who comes: names are believed, and nothing else is done yet."""

from __future__ import annotations

import os
from xml.etree import ElementTree

from table.store.hdfs.settings import HdfsSettings
from table.store.location import Location

AUTHENTICATION = "hadoop.security.authentication"
SIMPLE = "simple"
FILES = ("core-site.xml", "hdfs-site.xml")
FOLDER_VARIABLE = "HADOOP_CONF_DIR"


def asked_security(settings: HdfsSettings) -> str:
    """By the cluster's configuration, as far as that is here and can be read."""
    folder = settings.config_folder or os.environ.get(FOLDER_VARIABLE, "")
    found = SIMPLE
    for name in FILES if folder else ():
        try:
            root = ElementTree.parse(os.path.join(folder, name)).getroot()
        except (OSError, ElementTree.ParseError):
            continue
        for one in root.iter("property"):
            if (one.findtext("name") or "").strip() == AUTHENTICATION:
                found = (one.findtext("value") or "").strip().lower() or SIMPLE
    return found


def no_security(location: Location, asked: str) -> str:
    """Why not, as a sentence."""
    return (
        f"{location}: its cluster wants {asked} ({AUTHENTICATION}), which Lockstep has not been tried with "
        "and does not do yet: keep the table on a cluster that takes users by their names, or in S3"
    )
