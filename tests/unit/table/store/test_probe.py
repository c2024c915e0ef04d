"""How soon it is said that a store does not answer, where no server is needed for that."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from table.store.hdfs.settings import HdfsSettings
from table.store.probe import NAME_NODE_S, probe

SOON_S = 20.0


@pytest.fixture
def silent() -> Iterator[str]:
    """A port where connections are taken and nothing is ever said, as behind many a firewall."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("authority", "sentence"),
    [
        ("", f"HDFS did not answer within {NAME_NODE_S:.0f} s"),
        ("nowhere.invalid", "nobody here knows the name node nowhere.invalid: correct the address"),
        ("lakehouse", "nobody here knows the name node lakehouse: correct the address"),
    ],
)
def test_a_name_node_that_is_not_there_is_said_soon_and_with_its_name(
    silent: str, authority: str, sentence: str
) -> None:
    began_s = time.monotonic()
    with pytest.raises(OSError) as caught:
        list(probe(f"hdfs://{authority or silent}/lake/events", HdfsSettings()))
    assert time.monotonic() - began_s < SOON_S
    assert sentence in str(caught.value.strerror)
