"""An order that comes to the page by POST: read within bounds, given to the run, answered in a sentence."""

from __future__ import annotations

import asyncio
import json

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from control_topic.controls import ACTIONS, SETTINGS, WHY_CHARS_MAX
from control_topic.spelling import one_line
from lockstep.errors import ConfigError, LockstepError
from lockstep.ui.port import Ordering, WantedOrder

BODY_S = 10.0
TEXT_CHARS_MAX = 100
VALUE_CHARS_MAX = 200
"""Of a setting: as many as a schedule may have."""
FIELDS = ("action", "settings", "who", "why", "run")


class BadOrder(Exception):
    """It is none; the sentence says what is wrong with it."""


def wanted_order(body: bytes, host: str) -> WantedOrder:
    """Of a JSON object of `FIELDS`. Raises `BadOrder`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadOrder("The order is not JSON.") from error
    if not isinstance(document, dict) or not document.keys() <= set(FIELDS):
        raise BadOrder(f"An order is an object of {', '.join(FIELDS)}.")
    action, settings = document.get("action"), document.get("settings", {})
    if not isinstance(action, str) or action not in ACTIONS:
        raise BadOrder(f"There is no such order; those that there are: {', '.join(ACTIONS)}.")
    if not isinstance(settings, dict) or len(settings) > len(SETTINGS):
        raise BadOrder(f"Settings are an object of {', '.join(SETTINGS.values())}.")
    values = {
        _text(name, "A setting"): _text(text, "A value", VALUE_CHARS_MAX) for name, text in settings.items()
    }
    return WantedOrder(
        action=action,
        settings=values,
        who=_text(document.get("who", ""), "Who orders it"),
        why=_text(document.get("why", ""), "The reason why", WHY_CHARS_MAX),
        host=host,
        run=_text(document.get("run", ""), "The run"),
    )


def _text(value: object, what: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    if not isinstance(value, str):
        raise BadOrder(f"{what} is text.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadOrder(f"{what} has characters that are none.") from error
    if len(value) > chars_max:
        raise BadOrder(f"{what} has {len(value):,} characters; {chars_max:,} are the most.")
    return value


class OrderDesk:
    """One pipeline's, on the server's loop. One order at a time: who presses a button twice gives one."""

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._busy = asyncio.Lock()

    async def serve(self, request: Request) -> Response:
        """The answer to a request that `Gate` has let through."""
        if self._busy.locked():
            raise HTTPException(429, "Another order is being given at this moment.", {"Retry-After": "1"})
        async with self._busy:
            number = await self._give(request)
        return JSONResponse({"number": number}, status_code=202)

    async def _give(self, request: Request) -> int:
        try:
            async with asyncio.timeout(BODY_S):
                body = await request.body()
            host = request.client.host if request.client is not None else "an unknown address"
            wanted = wanted_order(body, host)
            return await asyncio.to_thread(self._ordering.give, wanted)
        except TimeoutError as error:
            raise HTTPException(408, "The order did not come in time.") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "The order ended in the middle.") from error
        except BadOrder as error:
            raise HTTPException(400, str(error)) from error
        except LockstepError as error:
            raise HTTPException(
                400 if isinstance(error, ConfigError) else 409, one_line(str(error))
            ) from error
