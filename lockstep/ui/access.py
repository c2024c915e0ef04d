"""Who may read the page: by address, by the name they ask for, by token. Pure."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

LOCALHOST = "localhost"
TOKEN_LENGTH_MIN = 16
COOKIE_BYTES_MAX = 4_096

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""


def is_loopback(bind: str) -> bool:
    """Whether only this machine reaches an address. A name other than localhost may mean anything."""
    if bind == LOCALHOST:
        return True
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return False


def hostname(host: str) -> str:
    """The name in a Host header, without its port, lower case; empty where there is none."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`bind`: where the page listens. `token`: what readers must show; empty where none is wanted."""

    bind: str
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.bind):
            raise ValueError(f"a page on {self.bind} is open to the network: it needs ui.token")
        if self.token and len(self.token) < TOKEN_LENGTH_MIN:
            raise ValueError(f"ui.token has fewer than {TOKEN_LENGTH_MIN} characters: make a longer one")

    def is_here(self, host: str) -> bool:
        """Whether the Host header names this page. A foreign name that leads to loopback is another site's
        script that reads along (DNS rebinding); elsewhere the token keeps it out."""
        if not is_loopback(self.bind):
            return True
        name = hostname(host)
        return name in (LOCALHOST, self.bind) or (name != "" and is_loopback(name))

    def admits(self, *, authorization: str, cookies: str, cookie: str) -> bool:
        """Whether a request shows the token: as a bearer, or by the cookie that `ticket` is the value of."""
        if not self.token or self.is_bearer(authorization):
            return True
        return any(_same(one, self.ticket()) for one in _values(cookies, cookie))

    def is_bearer(self, authorization: str) -> bool:
        """Whether the header shows the token: no other site's page can make a browser send it."""
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and self.is_token(given.strip())

    def is_token(self, given: str) -> bool:
        """In a time that does not tell how much of it is right."""
        return bool(self.token) and _same(given, self.token)

    def ticket(self) -> str:
        """What the cookie holds: not the token itself."""
        return hmac.new(self.token.encode(), b"lockstep page", hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _values(cookies: str, wanted: str) -> Collection[str]:
    if len(cookies) > COOKIE_BYTES_MAX:
        return ()
    found: SimpleCookie = SimpleCookie()
    try:
        found.load(cookies)
    except CookieError:
        return ()
    return (found[wanted].value,) if wanted in found else ()
