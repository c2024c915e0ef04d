"""What a worker takes of memory for files that are on their way to S3, where the server takes its time."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

import pytest

from lockstep.stores.local import ACCESS_KEY, SECRET_KEY, S3Server
from table.store.objects.requests import Request
from table.store.objects.settings import MIB, STREAMS_LEAST, ObjectSettings
from tests.s3_fixture import new_place
from tests.s3_proxy import S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

WORKER_BYTES = 512 * MIB
SHARE = 8
"""An eighth of a worker's memory is for what is encoded and not on the store yet (docs/stores.md)."""
FILE_MIB = 60
PART_TAKES_S = 0.25
WRITING = """
import resource, sys, threading
from table.store.location import store_at
from table.store.objects.settings import MIB, FixedKeys, ObjectSettings

def most_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

settings = ObjectSettings(
    endpoint=sys.argv[2], region="us-east-1", path_style=True, credentials=FixedKeys(*sys.argv[3:5])
).within(int(sys.argv[5]))
store = store_at(sys.argv[1], settings=settings)
store.put("first", b"1")

def write(name):
    sink = store.sink(name)
    for _ in range(int(sys.argv[7])):
        sink.write(bytes(MIB))
    sink.close()

before = most_mib()
writers = [threading.Thread(target=write, args=(str(number),)) for number in range(int(sys.argv[6]))]
for one in writers:
    one.start()
for one in writers:
    one.join()
assert all(store.secure(str(number)) == int(sys.argv[7]) * MIB for number in range(len(writers)))
print(before, most_mib())
"""
OTHERS_MIB = 32
"""Connections, threads, and pieces that are being copied."""


def test_parts_on_their_way_to_a_slow_server_stay_within_their_share(s3: S3Server) -> None:
    share = WORKER_BYTES // SHARE
    assert STREAMS_LEAST * ObjectSettings().within(share).sink_bytes_max <= share
    with S3Proxy(s3.port) as proxy:
        proxy.strike(Request.PART, partial(time.sleep, PART_TAKES_S), times=1_000)
        given = [ACCESS_KEY, SECRET_KEY, share, STREAMS_LEAST, FILE_MIB]
        done = subprocess.run(
            [sys.executable, "-c", WRITING, new_place(), proxy.endpoint, *map(str, given)],
            capture_output=True,
            text=True,
            timeout=180,
            check=True,
        )
    before, most = map(int, done.stdout.split())
    assert most - before <= share // MIB + OTHERS_MIB < STREAMS_LEAST * FILE_MIB, (before, most)
