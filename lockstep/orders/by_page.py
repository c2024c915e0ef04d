"""Orders that a reader of the page gives, as commands give theirs: by what the run left on this machine."""

from __future__ import annotations

from control_topic.controls import WHO_CHARS_MAX, Setting
from control_topic.spelling import one_line
from lockstep.config import Config, InvalidConfiguration
from lockstep.errors import ConfigError, Failed
from lockstep.orders.given import Orders, chosen, order
from lockstep.ui.port import WantedOrder

NAME_CHARS_MAX = 100
NOBODY = "somebody"


class PageOrders:
    """To the run of the pipeline that goes on here. May be used from any thread.

    `run`: whose page it is; empty: of whichever run a reader has seen.
    """

    def __init__(self, config: Config, *, run: str = "") -> None:
        self._config = config
        self._run = run

    def give(self, wanted: WantedOrder) -> int:
        """The order's number, once it is taken. Raises `ConfigError`, `Failed`."""
        settings = self._settings(wanted)
        asked = order(wanted.action, why=wanted.why, settings=settings, by=who(wanted))
        with Orders(self._config.pipeline.id) as orders:
            for meant in (self._run, wanted.run):
                if meant and meant != orders.run:
                    raise Failed(
                        f"the order is to run {one_line(meant)}, and what goes on here is run {orders.run}: "
                        "it was given to neither"
                    )
            return orders.give(asked).number

    def _settings(self, wanted: WantedOrder) -> dict[str, Setting]:
        """In a sentence without the command line's marks of where it was given: it was given on the page."""
        try:
            return chosen(self._config, [f"{name}={text}" for name, text in wanted.settings.items()])
        except InvalidConfiguration as error:
            sentences = [f"{problem.settings[0]}: {problem.sentence}" for problem in error.problems]
            raise ConfigError("; ".join(sentences)) from error


def who(wanted: WantedOrder) -> str:
    """The name that a reader gave, which nobody has checked, and the address that they came from."""
    name = one_line(wanted.who).strip()[:NAME_CHARS_MAX] or NOBODY
    return f"{name}, on the page, from {one_line(wanted.host)}"[:WHO_CHARS_MAX]
