"""Classes of ours that Hudi takes by their names, compiled and loaded in the driver's JVM when needed.

They are Java, kept as source: Spark brings a compiler, Janino, so that a JRE will do, and what is compiled
fits the Hudi and the Hadoop that are there. Nothing of it is on a disk or on a command line, so that any
spark-submit will do as well.
"""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from py4j.java_gateway import get_java_class
from py4j.protocol import Py4JJavaError

from table.errors import Refused
from table.hudi.driver.asking import elements
from table.hudi.driver.held import page_file

CLASS_VERSION = 6
"""Of what is compiled. From 7 on the JVM wants tables of types with the code, which Janino gets wrong where a
`try` has several `catch`."""

HELPERS = ("HeldLocks", "Processes")
"""Of the classes that take the lock. They are `lockstep.hudi`'s, and their files have their names."""

_DEFINING = threading.Lock()
"""A JVM refuses to define a class twice: the threads of this process look for it and define it in turns."""
HAVE_PACKAGES = ": have Spark resolve the packages that docs/stores.md names"


def java_class(
    jvm: Any, gateway: Any, *, name: str, source: str, beside: str, misfit: str, advice: str = ""
) -> Any:
    """The class of that name, where it is, else what `source`, a file in jvm/, compiles to.

    It is a class of the loader of `beside`, for whoever takes it by its name asks no other. Raises `Refused`
    where it does not fit what is on the class path: the sentence begins with `misfit`, says at what it does
    not, and ends with `advice`.
    """
    loader = _loader(jvm, beside, misfit, advice)
    with _DEFINING:
        try:
            return jvm.java.lang.Class.forName(name, True, loader)
        except Py4JJavaError:
            pass
        with _fitting(misfit, advice):
            return _define(jvm, gateway, loader, name, _class_files(jvm, loader, source))


def class_jar(jvm: Any, *, sources: Sequence[str], beside: str, misfit: str, advice: str = "") -> bytes:
    """A jar of what `sources` compile to, for other JVMs; here they are classes already. Raises `Refused` as
    `java_class`.
    """
    loader = _loader(jvm, beside, misfit, advice)
    with _fitting(misfit, advice):
        found = {name: code for one in sources for name, code in _class_files(jvm, loader, one).items()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, code in found.items():
            jar.writestr(f"{name.replace('.', '/')}.class", code)
    return made.getvalue()


def _loader(jvm: Any, beside: str, misfit: str, advice: str) -> Any:
    java = jvm.java.lang
    try:
        found = java.Class.forName(beside, False, java.Thread.currentThread().getContextClassLoader())
    except Py4JJavaError as error:
        raise Refused(f"{misfit}: there is no {beside}{advice}") from error
    return found.getClassLoader()


@contextmanager
def _fitting(misfit: str, advice: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        said = str(error.java_exception.getMessage()).split("\n", 1)[0]
        raise Refused(f"{misfit}: {said}{advice}") from error


def lock_class(
    jvm: Any,
    gateway: Any,
    *,
    name: str,
    source: str,
    beside: str,
    misfit: str,
    advice: str = "",
    helpers: Sequence[str] = (),
) -> Any:
    """As `java_class`, one that takes the table lock: it shows on this process's page what it holds.

    `helpers`: what it needs beside `HELPERS`, and is written as those are.
    """
    for one in (*HELPERS, *helpers):
        called, written = f"lockstep.hudi.{one}", f"{one}.java"
        java_class(jvm, gateway, name=called, source=written, beside=beside, misfit=misfit, advice=advice)
    jvm.lockstep.hudi.HeldLocks.show(page_file().path)
    return java_class(jvm, gateway, name=name, source=source, beside=beside, misfit=misfit, advice=advice)


def _class_files(jvm: Any, loader: Any, source: str) -> dict[str, bytes]:
    """By names of classes."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(CLASS_VERSION)
    compiler.cook(files(__package__).joinpath("jvm", source).read_text(encoding="utf-8"))
    codes = compiler.getBytecodes()
    return {str(made): bytes(codes.get(made)) for made in elements(codes.keySet())}


def _define(jvm: Any, gateway: Any, loader: Any, name: str, found: Mapping[str, bytes]) -> Any:
    java = jvm.java.lang
    wanted = (get_java_class(java.String), java.Class.forName("[B"), java.Integer.TYPE, java.Integer.TYPE)
    types = gateway.new_array(java.Class, len(wanted))
    for at, one in enumerate(wanted):
        types[at] = one
    define = get_java_class(java.ClassLoader).getDeclaredMethod("defineClass", types)
    define.setAccessible(True)  # Spark opens this package of Java's, for itself
    for made, code in found.items():
        given = gateway.new_array(java.Object, len(wanted))
        given[0], given[1], given[2], given[3] = made, code, 0, len(code)
        define.invoke(loader, given)
    return java.Class.forName(name, True, loader)
