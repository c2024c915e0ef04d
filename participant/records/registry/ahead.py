"""Questions for schemas that are asked ahead, several at once, while the decoding thread does other work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable

from participant.records.errors import SchemasPending, SchemasUnavailable, UnknownSchema

THREADS = 4
AHEAD_MAX = 5_000
"""Questions that wait or whose answers are not taken yet."""

Key = int | str
Answer = tuple[str, ...] | UnknownSchema | SchemasUnavailable
Ask = Callable[[Key], tuple[str, ...]]


class QuestionsAhead:
    """`make`: makes what asks, for one thread. `want` and `take` are for one thread."""

    def __init__(self, make: Callable[[], Ask]) -> None:
        self._make = make
        self._waiting: queue.SimpleQueue[Key] = queue.SimpleQueue()
        self._answers: dict[Key, Answer | None] = {}
        """None where the question has no answer yet."""
        self._threads: list[threading.Thread] = []

    def want(self, keys: Iterable[Key]) -> None:
        """Ask for these, as many as there is room for."""
        keys = list(dict.fromkeys(keys))
        wanted = frozenset(keys)
        for key in [key for key, answer in self._answers.items() if answer is not None and key not in wanted]:
            del self._answers[key]
        for key in keys:
            if len(self._answers) >= AHEAD_MAX:
                break
            if key not in self._answers:
                self._answers[key] = None
                self._waiting.put(key)
        self._threads = [one for one in self._threads if one.is_alive()]
        while len(self._threads) < THREADS and not self._waiting.empty():
            self._threads.append(threading.Thread(target=self._run, name="registry-ahead", daemon=True))
            self._threads[-1].start()

    def take(self, key: Key) -> tuple[str, ...] | None:
        """The answer, once; None where it was not asked ahead. Raises `UnknownSchema`, `SchemasPending`."""
        if key not in self._answers:
            return None
        answer = self._answers[key]
        if answer is None:
            raise SchemasPending("its records name new schemas, which the worker asks for in turn")
        del self._answers[key]
        if isinstance(answer, SchemasUnavailable):
            return None  # it is asked for as ever, which knows what to do then
        if isinstance(answer, UnknownSchema):
            raise answer
        return answer

    def _run(self) -> None:
        """Ask until nothing waits."""
        ask = self._make()
        while True:
            try:
                key = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._answers[key] = ask(key)
            except (UnknownSchema, SchemasUnavailable) as answer:
                self._answers[key] = answer
            except Exception as error:  # noqa: BLE001 - it is asked for as ever, and fails there
                self._answers[key] = SchemasUnavailable(str(error))
