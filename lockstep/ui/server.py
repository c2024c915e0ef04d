"""The page on a thread of its own: it listens, serves, and ends, and never holds anybody up."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import uvicorn

from lockstep.ui.access import LOCALHOST, Access
from lockstep.ui.app import Routes, make_app
from lockstep.ui.errors import NoPage
from lockstep.ui.port import Ordering, Watched
from lockstep.ui.protocol import CONNECTIONS_MAX, BoundedProtocol

log = logging.getLogger("lockstep.ui")

PORT = 8420
PORTS_TRIED = 20
"""From the wanted one on."""

BACKLOG = 128
HEAD_BYTES_MAX = 16_384
THREADS_BESIDE = 8
"""For questions, beside one for each pipeline that is listened to."""

START_S = 30.0
STOP_S = 5.0
GRACE_S = 1


def listen(bind: str, port: int) -> socket.socket:
    """A socket on the wanted port, or on the next free one; with 0, on any. Raises `NoPage`."""
    address = "127.0.0.1" if bind == LOCALHOST else bind
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    tried = [0] if port == 0 else range(port, min(port + PORTS_TRIED, 65_536))
    for one in tried:
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((address, one))
            made.listen(BACKLOG)
        except OSError as error:
            made.close()
            if error.errno == errno.EADDRINUSE:
                continue
            why = error.strerror or str(error)
            raise NoPage(
                f"The page cannot listen on {bind}, port {one}: {why}. Set ui.bind or ui.port."
            ) from error
        return made
    raise NoPage(f"The ports from {tried[0]} to {tried[-1]} on {bind} are all taken: set ui.port to another.")


class PageServer:
    """Serves from `start` to `stop`. `watched`: pipelines by name. `speaker`: who serves, for people.
    `orders`: who gives the orders of readers, by pipeline; the page of all others is only read."""

    def __init__(
        self,
        watched: Mapping[str, Watched],
        *,
        bind: str,
        port: int,
        token: str,
        speaker: str,
        orders: Mapping[str, Ordering] | None = None,
    ) -> None:
        """Raises `NoPage` where this would be open to the network, or anybody could give orders."""
        try:
            self._access = Access(bind=bind, token=token)
        except ValueError as error:
            raise NoPage(f"There is no page: {error}.") from error
        if orders and not token:
            raise NoPage("There is no page: one that takes orders needs ui.token.")
        self._orders = orders or {}
        self._watched = watched
        self._speaker = speaker
        self._bind = bind
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._routes: Routes | None = None

    @property
    def port(self) -> int:
        """The one it listens on, once it was started."""
        return self._port

    @property
    def readers(self) -> int:
        """Streams of events that somebody listens to."""
        return self._routes.streams if self._routes is not None else 0

    @property
    def url(self) -> str:
        """Where it is, once it was started."""
        host = f"[{self._bind}]" if ":" in self._bind else self._bind
        return f"http://{host}:{self._port}/"

    def start(self) -> None:
        """Returns once it answers. Raises `NoPage`."""
        made = listen(self._bind, self._port)
        wanted, self._port = self._port, made.getsockname()[1]
        if wanted not in (0, self._port):
            log.warning("port %d is taken: the page is on port %d", wanted, self._port)
        self._ending = asyncio.Event()
        self._routes = Routes(self._watched, self._ending, speaker=self._speaker, orders=self._orders)
        app = make_app(self._routes, access=self._access, cookie=f"lockstep-{self._port}")
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX + 1,
            backlog=BACKLOG,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=GRACE_S,
        )
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # strangers' requests are no news of the run
        self._server = uvicorn.Server(config)
        serving = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(made, serving), name="page", daemon=True)
        self._thread.start()
        if not serving.wait(START_S):
            raise NoPage(f"The page did not answer within {START_S:.0f} s.")

    def _run(self, made: socket.socket, serving: threading.Event) -> None:
        try:
            asyncio.run(self._serve(made, serving))
        except OSError as error:
            log.warning("the page has ended: %s", error)
        finally:
            made.close()

    async def _serve(self, made: socket.socket, serving: threading.Event) -> None:
        assert self._server is not None
        self._loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(len(self._watched) + THREADS_BESIDE, thread_name_prefix="page")
        self._loop.set_default_executor(threads)
        serving.set()  # the socket listens: who comes before the loop accepts waits for a moment
        await self._server.serve(sockets=[made])

    def stop(self) -> None:
        """Readers are told goodbye; returns after `STOP_S` at the latest."""
        if self._server is None or self._thread is None or self._loop is None or self._ending is None:
            return
        self._server.should_exit = True
        try:
            self._loop.call_soon_threadsafe(self._ending.set)
        except RuntimeError:  # it has ended already
            log.debug("the page had ended")
        self._thread.join(STOP_S)
