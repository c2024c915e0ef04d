"""Before any route: whoever comes from elsewhere, has no token, or does not just read where that is all that
there is, is refused."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lockstep.ui.access import HEADERS, Access
from lockstep.ui.seldom import Seldom

log = logging.getLogger("lockstep.ui")

SLOW_S = 10.0
"""A reader that takes nothing for so long is dropped: what waits for them is memory of the run's driver."""
TARGET_BYTES_MAX = 2_048
QUERY_FIELDS_MAX = 16
ORDERS = re.compile(r"/api/p/[0-9]{1,4}/orders")
"""The only place that takes more than a question."""
ORDER_BYTES_MAX = 8_192
WRONG_TOKEN_S = 0.5
"""Whoever shows a wrong token waits for the answer: with `CONNECTIONS_MAX` of them, some hundred a second."""
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="lockstep"'}
FOREIGN = ("cross-site", "same-site")
"""Sec-Fetch-Site of what another site's page makes a browser ask. Another port of localhost is same-site."""

ASKS_FOR_TOKEN = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Lockstep: token</title>
</head>
<body>
<main>
<h1>Lockstep</h1>
<p>This page is shown to whoever has its token: what <code>ui.token</code> in the pipeline's configuration
leads to.</p>
<form method="get" action="/">
<p><label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Show the page</button></p>
</form>
</main>
</body>
</html>
"""


class Gate:
    """`cookie`: the name of the one that stands for the token. `takes_orders`: whether any are taken."""

    def __init__(self, app: ASGIApp, *, access: Access, cookie: str, takes_orders: bool) -> None:
        self._app = app
        self._access = access
        self._cookie = cookie
        self._takes_orders = takes_orders
        self._failures = Seldom(time.monotonic)
        self._wrong_tokens = Seldom(time.monotonic)
        self._wrong = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            try:
                async with asyncio.timeout(SLOW_S):
                    await send(message)
            except TimeoutError:  # what was sent before is not read
                scope["state"]["transport"].abort()

        wrong_before = self._wrong
        refusal = self._refusal(scope)
        if self._wrong > wrong_before:
            await asyncio.sleep(WRONG_TOKEN_S)
        try:
            await (self._app if refusal is None else refusal)(scope, receive, guarded)
        except Exception:  # whatever is wrong with one answer: it is logged, and has the headers as well
            count = self._failures.more()
            if count:
                log.exception("the page could not answer, %d times since this was last said", count)
            if started:
                raise
            await _no(500, "This could not be answered: the log says why.")(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        is_order = scope["method"] == "POST" and ORDERS.fullmatch(scope["path"]) is not None
        refusal = self._no_order(scope, headers) if is_order else _no_question(scope, headers)
        if refusal is not None:
            return refusal
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > TARGET_BYTES_MAX:
            return _no(414, f"An address of more than {TARGET_BYTES_MAX} bytes is not taken.")
        if not self._access.is_here(headers.get("host", "")):
            return _no(
                421, "This page answers to localhost and to addresses of this machine's loopback only."
            )
        if _is_foreign(scope, headers):
            return _no(
                403, "Another site's page asks for this: only the page itself may be opened from there."
            )
        return self._without_token(scope, headers)

    def _no_order(self, scope: Scope, headers: Headers) -> Response | None:
        """It shows the token itself. A cookie does not count: a browser sends it whoever's page has asked,
        and to every port of this host, whoever listens there.
        """
        closed = {"Connection": "close"}  # what comes of its body is not read
        length = headers.get("content-length", "")
        if not self._takes_orders:
            return _no(403, "This page is only read: ui.control = false.", closed)
        if "transfer-encoding" in headers or not length.isdecimal():
            return _no(411, "An order says how long it is.", closed)
        if len(length) > len(str(ORDER_BYTES_MAX)) or int(length) > ORDER_BYTES_MAX:
            return _no(413, f"An order of more than {ORDER_BYTES_MAX:,} bytes is not taken.", closed)
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _no(415, "An order is JSON, and says so: Content-Type: application/json.", closed)
        if scope["query_string"]:
            return _no(400, "An order has nothing in its address.", closed)
        if not self._access.is_bearer(headers.get("authorization", "")):
            if "authorization" in headers:
                self._note_wrong_token(scope)
            return _no(401, "An order shows the token: it is missing or wrong.", {**closed, **CHALLENGE})
        return None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._access.token:
            return None
        fields = _fields(scope["query_string"])
        given = [value for name, value in fields if name == "token"]
        if given:
            return self._shown(scope, given[0], [one for one in fields if one[0] != "token"])
        admitted = self._access.admits(
            authorization=headers.get("authorization", ""),
            cookies=headers.get("cookie", ""),
            cookie=self._cookie,
        )
        if admitted:
            return None
        if "authorization" in headers or f"{self._cookie}=" in headers.get("cookie", ""):
            self._note_wrong_token(scope)
        return _asks(headers)

    def _shown(self, scope: Scope, token: str, others: list[tuple[str, str]]) -> Response:
        """The token was in the address: from now on a cookie stands for it, and the address forgets it."""
        if not self._access.is_token(token):
            self._note_wrong_token(scope)
            return _asks(Headers(scope=scope))
        path = "/" + scope["path"].lstrip("/\\")  # `//host` would lead elsewhere
        answer = RedirectResponse(path + (f"?{urlencode(others)}" if others else ""), status_code=303)
        answer.set_cookie(self._cookie, self._access.ticket(), path="/", httponly=True, samesite="strict")
        return answer

    def _note_wrong_token(self, scope: Scope) -> None:
        """That, and by whom; never what was shown, which may be a right one with a typing error."""
        self._wrong += 1
        count = self._wrong_tokens.more()
        if count:
            host = (scope.get("client") or ("an unknown address",))[0]
            log.warning(
                "a wrong token was shown to the page: %d times since this was last said, now from %s",
                count,
                host,
            )


def _no_question(scope: Scope, headers: Headers) -> Response | None:
    if scope["method"] not in ("GET", "HEAD"):
        return _no(405, "This is only read: GET and HEAD.", {"Allow": "GET, HEAD"})
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        return _no(413, "A request with a body is not taken.", {"Connection": "close"})
    return None


def _is_foreign(scope: Scope, headers: Headers) -> bool:
    """Whether a browser asks in the name of another site, and not because somebody followed a link to here.
    Such a page cannot read the answer, and yet each costs the driver what it takes to make it."""
    if headers.get("sec-fetch-site", "") not in FOREIGN:
        return False
    mode, target = headers.get("sec-fetch-mode", ""), headers.get("sec-fetch-dest", "")
    return (mode, target, scope["path"]) != ("navigate", "document", "/")


def _fields(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        return []


def _asks(headers: Headers) -> Response:
    if "text/html" in headers.get("accept", ""):
        return HTMLResponse(ASKS_FOR_TOKEN, status_code=401, headers=CHALLENGE)
    return _no(401, "The token is missing or wrong: Authorization: Bearer, or ?token= once.", CHALLENGE)


def _no(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)
