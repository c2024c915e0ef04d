"""The section of the configuration that says where the page of transactions is, and who may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lockstep.config import values
from lockstep.config.properties import resolve_references
from lockstep.config.sections import Section
from lockstep.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


class UiSection(Section):
    """The page: what a run does, live, for a browser, and its metrics for a scraper."""

    enabled: bool = Field(
        default=True,
        description=(
            "Whether the driver serves the page. Where it cannot, the log says why and the run goes on. "
            "`lockstep ui` serves it in any case."
        ),
    )
    port: int = Field(
        default=8420,
        ge=0,
        le=65_535,
        description=(
            "Its port. One that is taken is stepped over, 20 times at most, and the log says which it "
            "became. `0`: any that is free."
        ),
    )
    bind: values.Bind = Field(
        default="127.0.0.1",
        description=(
            "The address it listens on: `127.0.0.1` for this machine alone, `0.0.0.0` or `::` for all, which "
            "needs a token."
        ),
    )
    token: values.SecretReference = Field(
        default="",
        description=(
            "A reference to a secret of 16 characters or more, which readers must show: a browser once, as "
            "`?token=`, a scraper as `Authorization: Bearer`. Empty: everybody who reaches the address may "
            "read, which is allowed on loopback only."
        ),
        examples=["${file:/run/secrets/page-token}"],
    )
    control: bool = Field(
        default=False,
        description=(
            "Whether readers of the page may order of the run what `lockstep commit`, `pause`, `resume`, "
            "`set` and `stop` do. Needs `ui.token`: whoever has it may."
        ),
    )

    show_values: bool = Field(
        default=False,
        description=(
            "Whether readers of the page may look at the value of a record that became a dead letter: what "
            "is in it may be nobody else's to see. Needs `ui.token`."
        ),
    )

    def resolved_token(self, environment: Mapping[str, str] | None = None) -> str:
        """Empty where none is wanted. Raises `ConfigError`, never with a value in it."""
        if not self.token:
            return ""
        token = resolve_references({"token": self.token}, section="ui", environment=environment)["token"]
        if not token.strip():
            raise ConfigError("ui.token leads to an empty secret: anybody could read the page")
        return token.strip()
