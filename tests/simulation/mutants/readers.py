"""Bugs of how messages in parts are joined again."""

from __future__ import annotations

from control_topic.parts import Joiner, Part


class PartsOfTwoTransactionsMixed(Joiner):
    """Parts are joined by their sender and their count: those of two transactions' WRITE_STATUS may mix."""

    def add(self, part: Part) -> bytes | None:
        if part.parts == 1:
            return part.payload
        key = self._whose(part)
        payloads: dict[int, bytes] = self.__dict__.setdefault("mixed", {}).setdefault(key, {})
        payloads[part.part] = part.payload
        if len(payloads) < part.parts:
            return None
        del self.__dict__["mixed"][key]
        return b"".join(payloads[number] for number in range(part.parts))

    def _whose(self, part: Part) -> tuple[object, ...]:
        return part.run, part.incarnation, part.parts


class PartsOfTwoIncarnationsJoined(PartsOfTwoTransactionsMixed):
    """Parts are joined by their run and their count, whichever incarnations sent them."""

    def _whose(self, part: Part) -> tuple[object, ...]:
        return part.run, part.parts
