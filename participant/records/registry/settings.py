"""How a schema registry is reached. Shipped to executors in the task's closure, secrets resolved."""

from __future__ import annotations

from dataclasses import dataclass, field

from participant.records.registry.session import RegistrySession


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Empty text is nothing given."""

    url: str
    """One or several, separated by commas, of one registry."""
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    """A bearer's."""
    cluster: str = ""
    """Beside a token, whose logical cluster is meant."""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)
    timeout_ms: int = 10_000
    """For one answer."""
    cache_folder: str = ""
    """Empty: the user's cache folder."""
    session: RegistrySession | None = field(default=None, repr=False, compare=False)
    """What a worker has asked; None where nothing is decoded for long."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Each, without a slash at its end."""
        return tuple(one.strip().rstrip("/") for one in self.url.split(","))
