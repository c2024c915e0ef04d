"""Collections of a real JVM, read through Py4J."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import ARRAY_COMMAND_NAME, CALL_COMMAND_NAME

from table.hudi.driver.asking import Packages, elements, texts
from table.hudi.driver.java import FAILED

THROWS = "c\nz:java.util.Objects\nrequireNonNull\nn\ne\n"
DIES = "c\n{runtime}\nhalt\ni1\ne\n"


@pytest.fixture
def numbers(gateway: Any) -> Any:
    return gateway.jvm.java.util.ArrayList(range(10))


def test_all_of_a_collection_is_there_in_its_order(gateway: Any, numbers: Any) -> None:
    assert elements(numbers) == [*range(10)]
    assert elements(gateway.jvm.java.util.LinkedHashSet(numbers)) == [*range(10)]
    assert elements(numbers.stream()) == [*range(10)]
    assert elements(gateway.jvm.java.util.Collections.emptyList()) == elements(None) == []
    assert elements(gateway.jvm.java.util.Collections.singletonList(None)) == [None]


@pytest.mark.parametrize("kind", ["ArrayList", "LinkedHashSet"])
@pytest.mark.parametrize("wrong", [THROWS, DIES], ids=["throws", "dies"])
def test_what_goes_wrong_in_the_middle_of_a_list_is_not_its_end(
    gateway: Any, numbers: Any, monkeypatch: pytest.MonkeyPatch, wrong: str, kind: str
) -> None:
    """Whoever removed what such a list does not name removed what was committed."""
    collection = getattr(gateway.jvm.java.util, kind)(numbers)
    instead = wrong.format(runtime=gateway.jvm.java.lang.Runtime.getRuntime()._target_id)
    client = gateway._gateway_client
    send = client.send_command
    asked: list[str] = []

    def wrong_in_the_fifth(command: str, *args: Any, **kwargs: Any) -> Any:
        if command.startswith((CALL_COMMAND_NAME, ARRAY_COMMAND_NAME)):  # and not that an object is let go
            asked.append(command)
            command = instead if len(asked) == 5 else command
        return send(command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", wrong_in_the_fifth)
    with told(FAILED):
        elements(collection)


@contextmanager
def told(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors:
        return
    raise AssertionError("nobody was told")


def test_an_answer_that_was_cut_off_is_told() -> None:
    """Py4J takes what it has for the whole."""
    mapper = SimpleNamespace(writeValueAsString=lambda _mapped: '{"lockstep.offsets": "{')
    utilities = SimpleNamespace(JsonUtils=SimpleNamespace(getObjectMapper=lambda: mapper))
    hudi = SimpleNamespace(common=SimpleNamespace(util=utilities))
    with told(FAILED):
        texts(hudi, {})


def test_a_package_can_be_copied_and_asks_java_for_nothing_of_pythons(gateway: Any) -> None:
    packages = Packages(gateway.jvm)
    copied = copy.copy(packages)
    assert int(copied.java.lang.Integer.parseInt("7")) == 7
    assert not hasattr(packages.java, "__len__")


def test_pythons_own_iteration_takes_an_error_for_the_end(gateway: Any, numbers: Any) -> None:
    """Why it is not used: Java has said that the list was changed meanwhile."""
    met = []
    for number in numbers:
        met.append(number)
        numbers.add(number)
    assert met == [0]
