"""The document that the driver's page shows, where the driver of this pipeline serves one on this machine."""

from __future__ import annotations

import http.client
import json
from typing import Any

from lockstep.config import Config
from lockstep.config.properties import resolve_references
from lockstep.errors import Failed

PORTS_TRIED = 21
"""A page whose port is taken serves on the next that is free."""
ASK_S = 2.0
ANSWER_BYTES_MAX = 10_000_000


def page_document(config: Config) -> Any:
    """Raises `Failed` where nobody serves it."""
    ui = getattr(config, "ui", None)
    if ui is None or not ui.port:
        raise Failed("no page is served on a port that is known")
    given = getattr(ui, "token", "")
    token = resolve_references({"token": given}, section="ui")["token"] if given else ""
    for port in range(ui.port, min(ui.port + PORTS_TRIED, 65_536)):
        try:
            names = _get(port, "/api/pipelines", token)
            if isinstance(names, list) and config.pipeline.id in names:
                return _get(port, f"/api/p/{names.index(config.pipeline.id)}/page", token)
        except (OSError, ValueError, http.client.HTTPException):
            continue
    raise Failed(f"no page of the pipeline is served here on the ports from {ui.port} on")


def _get(port: int, path: str, token: str) -> Any:
    """Raises `OSError`, `http.client.HTTPException`, `ValueError` for an answer that is no JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_S)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return json.loads(answer.read(ANSWER_BYTES_MAX))
    finally:
        connection.close()
