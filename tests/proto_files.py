"""Files of Protobuf for tests, compiled by protoc itself."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc


def compiled(sources: Mapping[str, str]) -> FileDescriptorSet:
    """Of each name its text; with all that they import, each behind what it imports."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        out = Path(folder) / "set"
        known = str(files("grpc_tools") / "_proto")
        options = [f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={out}"]
        code = protoc.main(["protoc", *options, *sources])
        assert code == 0, "protoc says above what is wrong"
        return FileDescriptorSet.FromString(out.read_bytes())


def encoded(of: FileDescriptorSet | FileDescriptorProto) -> str:
    """In base64."""
    return base64.b64encode(of.SerializeToString()).decode("ascii")


class Classes:
    """Of the messages of a set, by full name."""

    def __init__(self, made: FileDescriptorSet) -> None:
        self._pool = DescriptorPool()
        for file in made.file:
            self._pool.Add(file)

    def __getitem__(self, name: str) -> Any:
        return GetMessageClass(self._pool.FindMessageTypeByName(name))
