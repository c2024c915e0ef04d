"""The page's routes. Everything is read; nothing is changed, but by an order where the page takes some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from control_topic.causes import ABORT_CAUSES, COMMIT_PARTS, END_REASONS
from control_topic.controls import ACTIONS
from control_topic.spelling import one_line
from lockstep.errors import LockstepError
from lockstep.ui.access import Access
from lockstep.ui.errors import Hidden
from lockstep.ui.events import EventStream
from lockstep.ui.feed import LISTENERS_MAX, Feed, encoded
from lockstep.ui.gate import Gate
from lockstep.ui.ordering import OrderDesk
from lockstep.ui.port import Ordering, Watched
from lockstep.ui.scrape import OPENMETRICS_TYPE, PLAIN_TYPE, merged, wants_openmetrics
from lockstep.ui.shared import Shared

TRANSACTION_LENGTH_MAX = 128
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
WORDS = {
    "end_reasons": END_REASONS,
    "abort_causes": ABORT_CAUSES,
    "commit_parts": COMMIT_PARTS,
    "actions": ACTIONS,
}


def assets() -> dict[str, tuple[bytes, str]]:
    """Name -> content and type, of all that a browser loads. They may be in a zip."""
    found = {}
    for one in files("lockstep.ui").joinpath("static").iterdir():
        kind = TYPES.get(one.name.rpartition(".")[2])
        if kind is not None:
            found[one.name] = (one.read_bytes(), kind)
    return found


class Routes:
    """`watched`: pipelines by name, in the order of their numbers. `ending`: set once the page ends, on the
    loop that serves it. `speaker`: whom readers miss then. `orders`: who gives those of readers, by pipeline;
    nobody where the page is only read. `streams`: so many of events go on."""

    def __init__(
        self,
        watched: Mapping[str, Watched],
        ending: asyncio.Event,
        *,
        speaker: str,
        orders: Mapping[str, Ordering],
    ) -> None:
        words = {name: dict(words) for name, words in WORDS.items()}
        self._words = {"speaker": speaker, "takes_orders": sorted(orders), **words}
        self._desks = {name: OrderDesk(ordering) for name, ordering in orders.items()}
        self._names = list(watched)
        self._watched = list(watched.values())
        self._feeds = [Feed(one) for one in self._watched]
        self._source_partitions = [Shared(partial(_partitions_of, one)) for one in self._watched]
        self._metrics = {form: Shared(partial(self._scraped, form)) for form in (False, True)}
        self._ending = ending
        self._looks_at_value = asyncio.Lock()
        self.streams = 0
        self._assets = assets()

    def all(self) -> Sequence[Route]:
        """Of `GET` and, with it, of `HEAD`; of `POST` what changes something."""
        one = "/api/p/{index:int}"
        return (
            Route("/", self.index),
            Route("/static/{name}", self.static),
            Route("/api/pipelines", self.pipelines),
            Route("/api/words", self.words),
            Route(f"{one}/page", self.page),
            Route(f"{one}/events", self.events),
            Route(f"{one}/transactions/{{transaction}}", self.story),
            Route(f"{one}/source_partitions", self.source_partitions),
            Route(f"{one}/dead_letters/{{topic}}/{{partition:int}}/{{offset:int}}", self.dead_letter),
            Route(f"{one}/orders", self.order, methods=["POST"]),
            Route("/metrics", self.metrics),
            Route("/healthz", self.healthz),
        )

    async def index(self, _request: Request) -> Response:
        return self._asset("index.html")

    async def static(self, request: Request) -> Response:
        return self._asset(request.path_params["name"])

    async def pipelines(self, _request: Request) -> Response:
        return JSONResponse(self._names)

    async def words(self, _request: Request) -> Response:
        return JSONResponse(self._words)

    async def page(self, request: Request) -> Response:
        watched = self._watched[self._index(request)]
        return await _json(lambda: watched.page().document)

    async def events(self, request: Request) -> Response:
        feed = self._feeds[self._index(request)]
        if self.streams >= LISTENERS_MAX:
            raise HTTPException(503, f"{LISTENERS_MAX} readers listen already.", {"Retry-After": "5"})
        return _Counted(EventStream(feed, ending=self._ending), self)

    async def story(self, request: Request) -> Response:
        watched = self._watched[self._index(request)]
        wanted = request.path_params["transaction"]
        if len(wanted) > TRANSACTION_LENGTH_MAX:
            raise HTTPException(404, "No transaction has an id as long as that.")
        return await _json(
            lambda: watched.story(wanted), missing="This transaction is not known any more, or not yet."
        )

    async def source_partitions(self, request: Request) -> Response:
        content = await self._source_partitions[self._index(request)].get()
        return Response(content, media_type="application/json")

    async def dead_letter(self, request: Request) -> Response:
        watched, place = self._watched[self._index(request)], request.path_params
        if self._looks_at_value.locked():
            raise HTTPException(429, "Another value is being read at this moment.", {"Retry-After": "1"})
        async with self._looks_at_value:
            try:
                return await _json(
                    lambda: watched.dead_letter(place["topic"], place["partition"], place["offset"]),
                    missing="The page names no such dead letter, or not any more.",
                )
            except LockstepError as error:
                raise HTTPException(
                    403 if isinstance(error, Hidden) else 502, one_line(str(error))
                ) from error

    async def order(self, request: Request) -> Response:
        desk = self._desks.get(self._names[self._index(request)])
        if desk is None:
            raise HTTPException(403, "This pipeline takes no orders from here.")
        return await desk.serve(request)

    async def metrics(self, request: Request) -> Response:
        openmetrics = wants_openmetrics(request.headers.get("accept", ""))
        content = await self._metrics[openmetrics].get()
        return Response(content, headers={"Content-Type": OPENMETRICS_TYPE if openmetrics else PLAIN_TYPE})

    async def healthz(self, _request: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    @property
    def takes_orders(self) -> bool:
        """Of some pipeline, at least."""
        return bool(self._desks)

    def count(self, streams: int) -> None:
        """So many streams of events more."""
        self.streams += streams

    def _scraped(self, openmetrics: bool) -> bytes:
        return merged([one.metrics(openmetrics=openmetrics) for one in self._watched])

    def _asset(self, name: str) -> Response:
        if name not in self._assets:
            raise HTTPException(404, "There is nothing here.")
        content, kind = self._assets[name]
        return Response(content, headers={"Content-Type": kind})

    def _index(self, request: Request) -> int:
        index: int = request.path_params["index"]
        if index >= len(self._watched):
            raise HTTPException(404, "There is no pipeline of this number.")
        return index


class _Counted(Response):
    """A stream that counts from before its first byte until after its last."""

    def __init__(self, stream: EventStream, routes: Routes) -> None:
        self._stream = stream
        self._routes = routes
        self.background = None
        routes.count(1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            self._routes.count(-1)


def _partitions_of(watched: Watched) -> bytes:
    return encoded(watched.source_partitions())


async def _json(ask: Callable[[], Any], missing: str = "") -> Response:
    """What a pipeline says, asked and encoded beside the loop that serves all readers."""

    def answer() -> bytes | None:
        said = ask()
        return None if said is None else encoded(said)

    content = await asyncio.to_thread(answer)
    if content is None:
        raise HTTPException(404, missing)
    return Response(content, media_type="application/json")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


def make_app(routes: Routes, *, access: Access, cookie: str) -> ASGIApp:
    """`cookie`: the name of the one that stands for the token."""
    gate = Middleware(Gate, access=access, cookie=cookie, takes_orders=routes.takes_orders)
    return Starlette(
        routes=routes.all(),
        middleware=[gate],
        exception_handlers={HTTPException: _refused},
    )
