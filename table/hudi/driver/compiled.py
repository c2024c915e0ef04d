"""Classes of ours that Hudi takes by their names, compiled and loaded in the driver's JVM when needed.

They are Java, kept as source: Spark brings a compiler, Janino, so that a JRE will do, and what is compiled
fits the Hudi and the Hadoop that are there. Nothing of it is on a disk or on a command line, so that any
spark-submit will do as well.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from py4j.java_gateway import get_java_class
from py4j.protocol import Py4JJavaError

CLASS_VERSION = 6
"""Of what is compiled. From 7 on the JVM wants tables of types with the code, which Janino gets wrong where a
`try` has several `catch`."""


class DoesNotFit(Exception):
    """The source does not compile against what is on the class path: the sentence says at what."""


def java_class(jvm: Any, gateway: Any, *, name: str, source: str, beside: str) -> Any:
    """The class of that name, where it is, else what `source`, a file in jvm/, compiles to.

    It is a class of the loader of `beside`, one of Hudi's, for Hudi asks no other. Raises `DoesNotFit`.
    """
    java = jvm.java.lang
    loader = java.Class.forName(
        beside, False, java.Thread.currentThread().getContextClassLoader()
    ).getClassLoader()
    try:
        return java.Class.forName(name, True, loader)
    except Py4JJavaError:
        return _define(jvm, gateway, loader, name, source)


def _define(jvm: Any, gateway: Any, loader: Any, name: str, source: str) -> Any:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(CLASS_VERSION)
    try:
        compiler.cook(files(__package__).joinpath("jvm", source).read_text(encoding="utf-8"))
    except Py4JJavaError as error:
        raise DoesNotFit(str(error.java_exception.getMessage()).split("\n", 1)[0]) from error
    java = jvm.java.lang
    wanted = (get_java_class(java.String), java.Class.forName("[B"), java.Integer.TYPE, java.Integer.TYPE)
    types = gateway.new_array(java.Class, len(wanted))
    for at, one in enumerate(wanted):
        types[at] = one
    define = get_java_class(java.ClassLoader).getDeclaredMethod("defineClass", types)
    define.setAccessible(True)  # Spark opens this package of Java's, for itself
    for made, code in dict(compiler.getBytecodes()).items():
        given = gateway.new_array(java.Object, len(wanted))
        given[0], given[1], given[2], given[3] = made, bytes(code), 0, len(code)
        define.invoke(loader, given)
    return java.Class.forName(name, True, loader)
