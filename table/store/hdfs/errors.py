"""What HDFS says no with, as the `OSError` that callers know, and a sentence for a person. Pure.

hdfs-native gives a name node's exception as text: Java's class, its message and its stack, of which only the
message's first line gets into ours.
"""

from __future__ import annotations

import errno
import re
from urllib.parse import urlsplit

SENTENCE_MAX = 300
_EXCEPTION = re.compile(
    r'^(?:Fatal)?RPCError\("(?P<name>[\w.$]+)", "(?P<said>(?:[^"\\]|\\.)*)"\)$', re.DOTALL
)
_NUMBER = re.compile(r"\(os error (\d+)\)")
_QUOTAS = frozenset(
    {"DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"}
)
_GONE = frozenset({"FileNotFoundException", "LeaseExpiredException"})
_REFUSED = frozenset({"AccessControlException", "AuthorizationException", "InvalidToken", "SaslException"})
_NO_HOST = "No NameNode hosts found"
_DATA_NODES = re.compile(r'^(?:DataTransferError\(|OperationFailed\("Failed to complete file in time"\)$)')
"""hdfs-native's own errors of data nodes that fail, or that do not report a block to the name node."""
_NO_DATA_NODE = re.compile(r"could only be (?:written|replicated) to \d+ ")
"""What a name node says, of no class of its own, where it finds no data node that takes a block now."""
_NO_FOLDER = frozenset({"ParentNotDirectoryException", "PathIsNotDirectoryException"})


def told(error: BaseException, place: str) -> OSError:
    """The error to raise for one of the client's. `place`: which file or folder, for people."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "No such file or directory", place)
    if isinstance(error, FileExistsError):
        return FileExistsError(errno.EEXIST, _first_line(str(error)), place)
    if isinstance(error, IsADirectoryError):
        return IsADirectoryError(errno.EISDIR, "Is a directory", place)
    if _DATA_NODES.match(str(error)):
        return _no_data_node(_first_line(str(error)), place)
    found = _EXCEPTION.match(str(error))
    if found:
        return _refused(found["name"].rpartition(".")[2], _first_line(found["said"]), place)
    said = _first_line(str(error))
    if isinstance(error, OSError):
        number = _NUMBER.search(said)
        return ConnectionError(
            int(number[1]) if number else errno.EHOSTUNREACH,
            f"HDFS cannot be reached, or broke the connection off ({said}): see whether its nodes are up",
            place,
        )
    if _NO_HOST in said:
        who = urlsplit(place).netloc
        return OSError(
            errno.ENXIO,
            f"nobody here knows the name node {who}: correct the address, or, of a name service, have "
            "storage.config_folder or HADOOP_CONF_DIR name the folder whose hdfs-site.xml says who it is",
            place,
        )
    return OSError(errno.EIO, f"HDFS does not do it: {said}", place)


def _refused(name: str, said: str, place: str) -> OSError:
    if name in _GONE:
        return FileNotFoundError(errno.ENOENT, f"No such file or directory ({said})", place)
    if name in _NO_FOLDER:
        return NotADirectoryError(errno.ENOTDIR, "Not a directory", place)
    if name in _REFUSED:
        return PermissionError(errno.EACCES, f"HDFS does not let this user do it: {said}", place)
    if name in _QUOTAS:
        return OSError(errno.EDQUOT, f"the quota is used up: {said}", place)
    if name == "SafeModeException":
        why = f"the name node is in safe mode until its blocks are reported, and takes nothing ({said})"
        return OSError(errno.EROFS, why, place)
    if name == "InvalidPathException":
        return OSError(errno.EINVAL, "HDFS takes no path with a colon in it, nor an empty part", place)
    if name == "StandbyException":
        why = "no name node is active: see whether one takes over, and whether the configuration names all"
        return OSError(errno.EAGAIN, why, place)
    if _NO_DATA_NODE.search(said):
        return _no_data_node(said, place)
    return OSError(errno.EIO, f"HDFS does not do it: {name}: {said}", place)


def _no_data_node(said: str, place: str) -> ConnectionError:
    return ConnectionError(
        errno.EHOSTUNREACH,
        f"the data nodes of HDFS did not do it ({said}): see whether they are up and have room",
        place,
    )


def _first_line(text: str) -> str:
    return re.split(r"\n|\\n", text, maxsplit=1)[0].strip()[:SENTENCE_MAX]
