"""How a worker's memory is divided: the one place that does it.

What is left over, an eighth and more, is for what nobody counts: the batch in work, the interpreter, Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass

QUEUE_BYTES_LEAST = 1_000_000


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Shares of `memory.per_worker`. `uploads`: files hold memory until their store has them, as on an object
    store; on a file system the system holds them. `exchanges`: workers hand rows over to each other.
    """

    per_worker_bytes: int
    uploads: bool = False
    exchanges: bool = False

    @property
    def buffered_bytes(self) -> int:
        """Decoded rows and rejects that no file holds yet: above it consuming is paused."""
        return self.per_worker_bytes // 4

    @property
    def idle_bytes(self) -> int:
        """The same while no file is open, as during a commit: what files would hold is free for them."""
        return self.buffered_bytes + self.held_bytes

    @property
    def encoding_bytes(self) -> int:
        """Rows that a writer of files keeps until they are worth encoding."""
        return self.per_worker_bytes * (3 if self.uploads else 4) // 16 - self.exchanged_bytes

    @property
    def exchanged_bytes(self) -> int:
        """Rows that are on their way to others, or came from them and wait to be written."""
        return self.per_worker_bytes // 16 if self.exchanges else 0

    @property
    def held_bytes(self) -> int:
        """What is encoded, and of a file that is not whole on its store yet."""
        return self.per_worker_bytes * (2 if self.uploads else 1) // 16

    @property
    def fetched_bytes(self) -> int:
        """What librdkafka fetches ahead."""
        return self.per_worker_bytes // 8

    @property
    def queued_bytes(self) -> int:
        """What was consumed and waits to be decoded."""
        return max(QUEUE_BYTES_LEAST, self.per_worker_bytes // 16)

    @property
    def letters_bytes(self) -> int:
        """Dead letters on their way."""
        return self.per_worker_bytes // 16

    @property
    def batch_bytes(self) -> int:
        """Columns of a batch that hold nothing: rows of a wide table are large, however small its records."""
        return self.per_worker_bytes // 16
