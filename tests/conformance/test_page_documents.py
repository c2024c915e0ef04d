"""The documents that tests of the page make up, and who shows them, against the observer's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from control_topic.controls import COMMIT, Tuning
from lockstep.config import from_mapping
from lockstep.ui.port import Watched
from lockstep.watch.observer import Observer
from lockstep.watch.page import control_entry, page_document
from lockstep.watch.page_rows import story
from table.service.calls import Order
from table.service.orders import Orders
from tests import watched
from tests.unit.lockstep.ui import documents
from tests.unit.lockstep.ui.documents import Shown

FREE = {".workers.seconds", ".transactions.took_ms", ".took_ms"}
"""Names in these are anybody's."""


def names(value: Any, path: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Each object's place in a document, and the names in it; of a list all members are in one place."""
    if isinstance(value, dict):
        if path not in FREE:
            yield path, frozenset(value)
        for name, one in value.items():
            yield from names(one, f"{path}.{name}")
    elif isinstance(value, list):
        for one in value:
            yield from names(one, path)


def shape(document: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Place -> names; whoever is in one place has the same ones."""
    found: dict[str, frozenset[str]] = {}
    for path, some in names(document):
        assert found.setdefault(path, some) == some, path
    return found


def test_a_made_up_document_and_story_have_the_names_of_the_observers() -> None:
    said = watched.rich()
    found = watched.seen(said)
    real, made = page_document(found.page(said.now_ms)), documents.document(count=80)
    assert shape(made) == shape(real)
    orders = Orders(Tuning(interval_ms=2_000, write_timeout_ms=60_000))
    orders.take(1_000, Order(action=COMMIT))
    control = control_entry({"control": orders.to_json(2_000)}, said.now_ms)
    assert control is not None
    assert documents.order(1, said.now_ms).keys() == control["orders"][0].keys()
    aborted = next(one for one in real["transactions"] if one["phase"] == "aborted")
    transaction = found.history.find(aborted["id"])
    assert transaction is not None
    told = shape(story(transaction, found.history.names(transaction.run)))
    made_up = next(one for one in made["transactions"] if one["phase"] == "aborted")
    mine = shape(documents.story(made_up))
    assert {path: mine[path] for path in told.keys() & mine.keys()} == {
        path: told[path] for path in told.keys() & mine.keys()
    }
    assert {"", ".writers", ".writers.ranges", ".messages"} <= told.keys() & mine.keys()


def waited(one: Watched) -> tuple[bool, bool, bool]:
    """Whether the first page comes at once, is the newest, and is still that when nothing has happened."""
    first = one.wait(0, 60.0)
    return first.number > 0, first == one.page(), one.wait(first.number, 0.05).number == first.number


def test_who_shows_a_document_waits_as_the_observer_does() -> None:
    config = from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": "file:///data/lake/events", "name": "events"},
        }
    )
    observer = Observer(config, {"bootstrap.servers": "127.0.0.1:1"}, ask_live=lambda: None)
    assert waited(Shown()) == waited(observer) == (True, True, True)
    assert Shown().story("unknown") is observer.story("unknown") is None
