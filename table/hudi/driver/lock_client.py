"""The class with which Hudi's storage lock reaches S3, compiled and loaded in the driver's JVM when needed.

Hudi 1.2.0 takes the class of a scheme by its name, and has its own in a module with another SDK and another
configuration. Ours is Java (lock/S3StorageLockClient.java), kept as source: Spark brings a compiler, Janino,
so that a JRE will do, and what is compiled fits the Hudi and the Hadoop that are there. Nothing of it is on a
disk or on a command line, so that any spark-submit will do as well.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from py4j.java_gateway import get_java_class
from py4j.protocol import Py4JJavaError

from table.errors import Refused

NAME = "org.apache.hudi.aws.transaction.lock.S3StorageLockClient"
SOURCE = "S3StorageLockClient.java"
LEASE_FILE = ".hoodie/.locks/table_lock.json"
"""Where Hudi has the lock, below the table."""
MARK = "configure"
"""A method that Hudi's own class does not have."""
CLASS_VERSION = 6
"""Of what is compiled. From 7 on the JVM wants tables of types with the code, which Janino gets wrong where a
`try` has several `catch`."""


def lock_client(jvm: Any, gateway: Any) -> Any:
    """The class, as Py4J has it. Raises `Refused` where the JVM lacks what it needs, or has another one."""
    loader = get_java_class(jvm.org.apache.hudi.client.transaction.lock.StorageLockClient).getClassLoader()
    try:
        found = jvm.java.lang.Class.forName(NAME, True, loader)
    except Py4JJavaError:
        found = _define(jvm, gateway, loader)
    if MARK not in {str(method.getName()) for method in found.getMethods()}:
        raise Refused(
            f"{NAME} of hudi-aws is on the class path, which takes no endpoint and does not look whether a "
            "write that was not answered has landed: take it out, Lockstep brings its own"
        )
    return jvm.org.apache.hudi.aws.transaction.lock.S3StorageLockClient


def _define(jvm: Any, gateway: Any, loader: Any) -> Any:
    """Compile it against what `loader` has, and make it a class of that loader, for Hudi asks no other."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(CLASS_VERSION)
    source = files(__package__).joinpath("lock", SOURCE).read_text(encoding="utf-8")
    try:
        compiler.cook(source)
    except Py4JJavaError as error:
        raise Refused(
            f"the lock of tables on S3 does not fit this Hudi or this Hadoop: {_said(error)}: have Spark "
            "resolve the packages that docs/stores.md names"
        ) from error
    java = jvm.java.lang
    wanted = (get_java_class(java.String), java.Class.forName("[B"), java.Integer.TYPE, java.Integer.TYPE)
    types = gateway.new_array(java.Class, len(wanted))
    for at, one in enumerate(wanted):
        types[at] = one
    define = get_java_class(java.ClassLoader).getDeclaredMethod("defineClass", types)
    define.setAccessible(True)  # Spark opens this package of Java's, for itself
    for name, code in dict(compiler.getBytecodes()).items():
        given = gateway.new_array(java.Object, len(wanted))
        given[0], given[1], given[2], given[3] = name, bytes(code), 0, len(code)
        define.invoke(loader, given)
    return java.Class.forName(NAME, True, loader)


def _said(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage()).split("\n", 1)[0]
