"""The document that the driver's page shows, where the driver of this pipeline serves one on this machine."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from lockstep.config import Config
from lockstep.driver.rundir import read_run_file
from lockstep.errors import Failed

ASK_S = 2.0
ANSWER_BYTES_MAX = 10_000_000
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses to listen on, which are none to ask."""


def page_document(config: Config) -> Any:
    """Nobody is shown the token but the page that the pipeline's run said is its own.

    Raises `Failed` where nobody serves it.
    """
    left = read_run_file(config.pipeline.id)
    if left is None or not left.page:
        raise Failed("no run of this pipeline has left on this machine where its page is")
    if not left.driver_is_there():  # its port may be anybody's
        raise Failed("the run that served the page has ended")
    token = config.ui.resolved_token()
    try:
        names = _get(left.page, "/api/pipelines", token)
        if isinstance(names, list) and config.pipeline.id in names:
            return _get(left.page, f"/api/p/{names.index(config.pipeline.id)}/page", token)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Failed(f"the page does not answer: {error}") from error
    raise Failed("the page does not show this pipeline")


def _get(url: str, path: str, token: str) -> Any:
    """Raises `OSError`, `http.client.HTTPException`, `ValueError` for an answer that is no JSON."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(EVERYWHERE.get(host, host), parts.port, timeout=ASK_S)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return json.loads(answer.read(ANSWER_BYTES_MAX))
    finally:
        connection.close()
