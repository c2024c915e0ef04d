"""Generate the protobuf and gRPC stubs from `proto/`. Run by `make proto` and by the test for stale ones.

protoc names a generated module after the folder of its source. The sources live in `proto/`, but a Python
package of that name would shadow proto-plus, so the stubs go into the packages that own them and the
generated imports are rewritten to say so.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent

STUB_FOLDERS: Mapping[str, str] = {
    "control_pb2.py": "control_topic/stubs",
    "control_pb2.pyi": "control_topic/stubs",
    "table_pb2.py": "table/stubs",
    "table_pb2.pyi": "table/stubs",
    "table_pb2_grpc.py": "table/stubs",
}
"""Generated file -> the folder that owns it, relative to the destination."""

PACKAGE_MARKER = '"""Generated from proto/ by `make proto`. Not edited by hand."""\n'

REWRITES: Mapping[str, str] = {
    "from proto import control_pb2": "from control_topic.stubs import control_pb2",
    "from proto import table_pb2": "from table.stubs import table_pb2",
    "'proto.control_pb2'": "'control_topic.stubs.control_pb2'",
    "'proto.table_pb2'": "'table.stubs.table_pb2'",
    "in proto/table_pb2_grpc.py": "in table/stubs/table_pb2_grpc.py",
}
"""What protoc wrote -> what resolves here. The quoted names become the `__module__` of the messages."""


def generate(destination: Path) -> list[Path]:
    """Write every stub below `destination`; the files written, relative to it and sorted.

    Raises `RuntimeError` where protoc refuses the sources; what it found is on stderr.
    """
    with tempfile.TemporaryDirectory() as scratch:
        _run_protoc(Path(scratch))
        contents = {
            f"{folder}/{name}": _rewrite((Path(scratch) / "proto" / name).read_text(encoding="utf-8"))
            for name, folder in STUB_FOLDERS.items()
        }
    for folder in set(STUB_FOLDERS.values()):
        contents[f"{folder}/__init__.py"] = PACKAGE_MARKER
    for path, content in contents.items():
        target = destination / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return sorted(Path(path) for path in contents)


def _run_protoc(output: Path) -> None:
    arguments = [
        "protoc",
        f"--proto_path={ROOT}",
        f"--python_out={output}",
        f"--pyi_out={output}",
        f"--grpc_python_out={output}",
        "proto/control.proto",
        "proto/table.proto",
    ]
    status = protoc.main(arguments)
    if status != 0:
        raise RuntimeError(f"protoc ended with {status}: see its messages above, then correct proto/*.proto")


def _rewrite(content: str) -> str:
    for written, resolvable in REWRITES.items():
        content = content.replace(written, resolvable)
    return content


if __name__ == "__main__":
    for path in generate(ROOT):
        sys.stdout.write(f"{path}\n")
