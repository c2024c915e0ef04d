"""How many requests a store was sent: they cost money, and time one after the other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum


class Request(StrEnum):
    GET = "GET"
    HEAD = "HEAD"
    PUT = "PUT"
    PUT_IF = "PUT, conditional"
    LIST = "LIST"
    DELETE = "DELETE"
    DELETE_MANY = "DELETE, many"
    UPLOAD = "multipart: begin"
    PART = "multipart: part"
    COMPLETE = "multipart: complete"
    ABORT = "multipart: abort"
    LIST_UPLOADS = "multipart: list"


class Requests:
    """Counts what is asked for; what the client asks again by itself, after an error, is not in it. Safe to
    use from any thread.
    """

    def __init__(self) -> None:
        self._counts: Counter[Request] = Counter()
        self._lock = threading.Lock()

    def add(self, request: Request, count: int = 1) -> None:
        with self._lock:
            self._counts[request] += count

    def counts(self) -> Mapping[Request, int]:
        with self._lock:
            return {request: count for request, count in self._counts.items() if count}

    def total(self) -> int:
        return sum(self.counts().values())
