"""The generated stubs are those of the sources."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tools.generate_stubs import ROOT, generate


def test_the_stubs_are_what_the_sources_generate(tmp_path: Path) -> None:
    paths = generate(tmp_path)
    stale = [
        str(p)
        for p in paths
        if not (ROOT / p).exists() or (ROOT / p).read_bytes() != (tmp_path / p).read_bytes()
    ]
    assert stale == [], "run `make proto`"


def test_no_stub_is_left_that_the_sources_do_not_generate(tmp_path: Path) -> None:
    generated = {tmp_path / p for p in generate(tmp_path)}
    for folder in {p.parent.relative_to(tmp_path) for p in generated}:
        present = {p.name for p in (ROOT / folder).iterdir() if p.is_file()}
        assert present == {p.name for p in generated if p.parent == tmp_path / folder}


def test_messages_name_the_module_that_holds_them() -> None:
    from control_topic.stubs import control_pb2
    from table.stubs import table_pb2, table_pb2_grpc

    assert control_pb2.Envelope.__module__ == "control_topic.stubs.control_pb2"
    assert table_pb2.Reply.__module__ == "table.stubs.table_pb2"
    assert table_pb2_grpc.TableServiceStub.__module__ == "table.stubs.table_pb2_grpc"
    reply = table_pb2.Reply(committed=[control_pb2.TopicOffsets(topic="t", partitions=[0], offsets=[7])])
    assert table_pb2.Reply.FromString(reply.SerializeToString()) == reply


def test_no_python_package_shadows_proto_plus() -> None:
    spec = importlib.util.find_spec("proto")
    assert spec is None or not spec.origin or not Path(spec.origin).is_relative_to(ROOT / "proto")
    assert not list((ROOT / "proto").glob("*.py"))
