"""Before any route: whoever does not just read, comes from elsewhere or has no token is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lockstep.ui.access import HEADERS, Access

SLOW_S = 10.0
"""A reader that takes nothing for so long is dropped: what waits for them is memory of the run's driver."""
TARGET_BYTES_MAX = 2_048
QUERY_FIELDS_MAX = 16

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
    """`cookie`: the name of the one that stands for the token."""

    def __init__(self, app: ASGIApp, *, access: Access, cookie: str) -> None:
        self._app = app
        self._access = access
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            try:
                async with asyncio.timeout(SLOW_S):
                    await send(message)
            except TimeoutError:  # what was sent before is not read
                scope["state"]["transport"].abort()

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return _no(405, "This page is only read: GET and HEAD.", {"Allow": "GET, HEAD"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return _no(413, "A request with a body is not taken.", {"Connection": "close"})
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > TARGET_BYTES_MAX:
            return _no(414, f"An address of more than {TARGET_BYTES_MAX} bytes is not taken.")
        if not self._access.is_here(headers.get("host", "")):
            return _no(
                421, "This page answers to localhost and to addresses of this machine's loopback only."
            )
        return self._without_token(scope, headers)

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
        return None if admitted else _asks(headers)

    def _shown(self, scope: Scope, token: str, others: list[tuple[str, str]]) -> Response:
        """The token was in the address: from now on a cookie stands for it, and the address forgets it."""
        if not self._access.is_token(token):
            return _asks(Headers(scope=scope))
        path = "/" + scope["path"].lstrip("/\\")  # `//host` would lead elsewhere
        answer = RedirectResponse(path + (f"?{urlencode(others)}" if others else ""), status_code=303)
        answer.set_cookie(self._cookie, self._access.ticket(), path="/", httponly=True, samesite="strict")
        return answer


def _fields(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        return []


def _asks(headers: Headers) -> Response:
    challenge = {"WWW-Authenticate": 'Bearer realm="lockstep"'}
    if "text/html" in headers.get("accept", ""):
        return HTMLResponse(ASKS_FOR_TOKEN, status_code=401, headers=challenge)
    return _no(401, "The token is missing or wrong: Authorization: Bearer, or ?token= once.", challenge)


def _no(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)
