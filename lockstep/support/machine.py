"""What runs here, and on what: versions, cores, memory, room."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import confluent_kafka

from lockstep.config import Config
from lockstep.installed import version_of
from lockstep.launch.jars import JarsError, find_java
from lockstep.launch.submit import needs_of

LIBRARIES = (
    *("lockstep", "pyspark", "confluent-kafka", "pyarrow", "numpy", "grpcio", "protobuf", "pydantic", "hudi"),
    *("fastavro", "polars", "obstore", "botocore", "hdfs-native"),
)
JAVA_S = 10
FILE_BYTES_MAX = 65_536
MEMORY = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/cpu.max")


def machine(config: Config) -> dict[str, Any]:
    """What cannot be had is None."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "timezone": list(time.tzname),
        "python": sys.version,
        "libraries": {name: version_of(name) for name in LIBRARIES},
        "librdkafka": confluent_kafka.libversion()[0],
        "java": _java(),
        "jars": list(needs_of(config).packages),
        "system": {
            "platform": platform.platform(),
            "release": _os_release(),
            "cores": os.cpu_count(),
            "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            "memory": _memory(),
            "limits": {Path(path).name: _read(path).strip() or None for path in LIMITS},
        },
        "table_room": _room(config.table.path),
    }


def _java() -> str | None:
    try:
        said = subprocess.run(
            [str(find_java()), "-version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=JAVA_S,
            check=False,
        )
    except (JarsError, OSError, subprocess.SubprocessError) as error:
        return f"none: {error}"
    return said.stdout.strip()[:2_000]


def _os_release() -> str | None:
    for line in _read("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None


def _memory() -> dict[str, str]:
    lines = (line.partition(":") for line in _read("/proc/meminfo").splitlines())
    return {name: value.strip() for name, _, value in lines if name in MEMORY}


def _room(path: str) -> dict[str, int] | None:
    """Of a table on a file system, bytes."""
    parts = urlsplit(path)
    if parts.scheme != "file":
        return None
    folder = Path(unquote(parts.path))
    with suppress(OSError):
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        usage = shutil.disk_usage(folder)
        return {"total_bytes": usage.total, "free_bytes": usage.free}
    return None


def _read(path: str) -> str:
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read(FILE_BYTES_MAX)
    return ""
