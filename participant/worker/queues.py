"""A queue between threads: orders, and data bounded by bytes. Orders come out first."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class ByteQueue(Generic[T]):
    """Orders (size 0) always fit and overtake data; each kind is first in, first out.

    Data waits for room. One item always fits.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._orders: deque[T] = deque()
        self._data: deque[tuple[T, int]] = deque()
        self._held_bytes = 0
        self._changed = threading.Condition()

    def put(self, item: T, size_bytes: int = 0, *, timeout_s: float = 0.2) -> bool:
        """False when there was no room in time; the item was not taken then."""
        with self._changed:
            if size_bytes and not self._changed.wait_for(
                lambda: self._held_bytes == 0 or self._held_bytes + size_bytes <= self._bytes_max, timeout_s
            ):
                return False
            if size_bytes:
                self._data.append((item, size_bytes))
                self._held_bytes += size_bytes
            else:
                self._orders.append(item)
            self._changed.notify_all()
            return True

    def get(self, timeout_s: float, *, orders_only: bool = False) -> T | None:
        """The next item, None when none came in time. Its bytes are given back at once.

        `orders_only`: data stays where it is.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: bool(self._orders or (self._data and not orders_only)), timeout_s
            ):
                return None
            if self._orders:
                return self._orders.popleft()
            item, size_bytes = self._data.popleft()
            self._held_bytes -= size_bytes
            self._changed.notify_all()
            return item

    @property
    def held_bytes(self) -> int:
        with self._changed:
            return self._held_bytes
