"""What the JVM is asked through Py4J, where Py4J's own way is wrong, or asks much: 0.3 ms a question."""

from __future__ import annotations

import json
from typing import Any

from py4j.java_collections import JavaList
from py4j.java_gateway import JavaClass, JavaPackage
from py4j.protocol import Py4JNetworkError


class Packages:
    """Stands for a view or a package of Py4J's; each name is asked for once.

    Py4J asks for each word of `jvm.org.apache.hudi.common.util.Option`, each time, and the JVM looks into all
    jars for a class of each package's name. What is no class when it is first asked for stays a package: a
    class that is made later is not to be asked for here before.
    """

    def __init__(self, asked: Any) -> None:
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what Python asks of each object, a copy among them, is not Java's
            raise AttributeError(name)
        found = getattr(self._asked, name)
        if isinstance(found, JavaPackage):
            found = Packages(found)
        elif not isinstance(found, JavaClass):
            return found
        self.__dict__[name] = found  # found there from now on, and not asked for
        return found


def elements(collection: Any | None) -> list[Any]:
    """Of a `java.util.Collection`, in its order; of null, which Hudi's records have for empty ones, none.

    Raises what Py4J raises. Not so Python's own iteration: Py4J's iterator takes whatever goes wrong for the
    end, so that a JVM that dies meanwhile leaves a shorter list, and no word. And each end is a Java
    exception, about which PySpark asks the JVM some fifty times what it is.
    """
    if collection is None:
        return []
    if isinstance(collection, JavaList):
        return [collection.get(at) for at in range(collection.size())]
    return list(collection.toArray())


def texts(hudi: Any, mapped: Any) -> dict[str, str]:
    """A `java.util.Map` of texts, by one question: as JSON. `hudi`: the package org.apache.hudi.

    Raises what Py4J raises, also where the JVM died in the middle of its answer: to Py4J that is a whole one.
    """
    mapper = hudi.common.util.JsonUtils.getObjectMapper()
    try:
        return dict(json.loads(mapper.writeValueAsString(mapped)))
    except ValueError as error:
        raise Py4JNetworkError("the JVM's answer was cut off") from error
