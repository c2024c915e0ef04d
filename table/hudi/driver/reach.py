"""The driver's JVM is told how a store is reached: Hadoop's settings, after it has started.

So nothing of them is on a command line, in a file or among Spark's own properties, which are logged, shown
and kept. Keys are not even among Hadoop's: where executors are in this JVM, they are with the process's
credentials (`UserGroupInformation`), where Hadoop's connector looks first and nothing else does. Executors
elsewhere get Hadoop's settings with their tasks, and then the keys are among them.

HDFS is told a user's name, and believes it: the JVM and Python must say the same one, or what the one wrote
would be another's to the other.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi.driver.azure_connector import CLASSES as AZURE_CLASSES
from table.hudi.driver.azure_connector import SETTING as ABFSS
from table.hudi.driver.azure_connector import connect_azure
from table.hudi.driver.connector import SETTING, SPARING, connect_apart, connector
from table.hudi.driver.profile import SDKS_OWN, watched_profile
from table.store.connectors import HadoopSettings, hadoop_settings
from table.store.location import AZURE, HDFS, S3, Location
from table.store.security import AUTHENTICATION, SIMPLE, no_security
from table.store.settings import StoreSettings

OF_THE_USER = "user:///"
"""Hadoop's provider of what the process's own credentials hold."""
PROVIDERS = "hadoop.security.credential.provider.path"
DEFAULTS = frozenset({"core-default.xml", "hdfs-default.xml"})
DEFAULT_FILE_SYSTEM = ("fs.defaultFS", "fs.default.name")
LOADED = "lockstep.configuration"
"""Which files of Hadoop's configuration were loaded into it."""
USER_VARIABLE = "HADOOP_USER_NAME"
"""Of Hadoop's, and of hdfs-native's."""
HERE = "local["
"""How the master begins whose executors are in the driver's JVM."""
PROFILE = "aws.profile"
PROFILE_VARIABLE = "AWS_PROFILE"


def reach(spark: SparkSession, location: Location, settings: StoreSettings) -> Any:
    """Hadoop's configuration, with which Spark and Hudi reach the store. Raises `Refused`."""
    found = hadoop_settings(location, settings)
    context = spark.sparkContext
    jvm: Any = spark._jvm
    _check_environment(jvm, found)
    conf = context._jsc.hadoopConfiguration()
    _load(jvm, conf, found.resources)
    if location.scheme == HDFS:
        _check_user(jvm, conf, location)
    here = executes_here(spark)
    for name, value in found.plain.items():
        watched = here and value == SDKS_OWN
        conf.set(name, watched_profile(jvm, context._gateway) if watched else value)
    for one in found.tuning:
        if _unsaid(conf, one.asked):
            conf.set(one.name, one.value)
    if location.scheme == HDFS:
        return conf
    if here:
        if location.scheme == S3 and _unsaid(conf, SETTING):
            conf.set(SETTING, connector(jvm, context._gateway))
        _keep(jvm, found.secret)
        given = [one for one in (conf.get(PROVIDERS) or "").split(",") if one and one != OF_THE_USER]
        conf.set(PROVIDERS, ",".join([OF_THE_USER, *given]))
    else:
        for name, value in found.secret.items():
            conf.set(name, value)
        if location.scheme == S3 and (_unsaid(conf, SETTING) or conf.get(SETTING) == SPARING):
            connect_apart(spark, location.authority, conf)
    if location.scheme == AZURE and (_unsaid(conf, ABFSS) or conf.get(ABFSS) in AZURE_CLASSES):
        connect_azure(jvm, context._gateway, location, conf, here=here)
    return conf


def executes_here(spark: SparkSession) -> bool:
    """Whether executors are in the driver's JVM."""
    return str(spark.sparkContext.master).startswith(HERE)


def _unsaid(conf: Any, name: str) -> bool:
    """Whether nobody has said anything of it, but Hadoop itself."""
    return set(conf.getPropertySources(name) or DEFAULTS) <= DEFAULTS


def _load(jvm: Any, conf: Any, files: tuple[str, ...]) -> None:
    """Once. What they say of the default file system is left out."""
    if not files or conf.get(LOADED) == ",".join(files):
        return
    hadoop = jvm.org.apache.hadoop
    own = hadoop.conf.Configuration(False)
    for file in files:
        own.addResource(hadoop.fs.Path(f"file://{file}"))
    for name in DEFAULT_FILE_SYSTEM:
        own.unset(name)
    conf.addResource(own)
    conf.set(LOADED, ",".join(files))


def _check_user(jvm: Any, conf: Any, location: Location) -> None:
    """Raise `Refused` where this process and its JVM would not be the same user there."""
    asked = str(conf.get(AUTHENTICATION, SIMPLE)).lower()
    if asked != SIMPLE:
        raise Refused(no_security(location, asked))
    here = os.environ.get(USER_VARIABLE) or getpass.getuser()
    there = str(jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName())
    if here != there:
        raise Refused(
            f"{location}: the driver's JVM is the user {there} there, and Python is {here}: set "
            f"{USER_VARIABLE} to one name, for driver and executors, before Spark starts"
        )


def _keep(jvm: Any, secret: Mapping[str, str]) -> None:
    """In the memory of this process, with whom it runs as."""
    hadoop = jvm.org.apache.hadoop
    credentials = hadoop.security.Credentials()
    for name, value in secret.items():
        credentials.addSecretKey(hadoop.io.Text(name), value.encode())
    hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)


def _check_environment(jvm: Any, found: HadoopSettings) -> None:
    system = jvm.java.lang.System
    for name, value in found.environment.items():
        if system.getenv(name) != value:
            raise Refused(
                f"the JVM's web identity is that of its environment: set {name} to what the configuration "
                "says, for the driver and for executors"
            )
    if found.profile:
        said = system.getenv(PROFILE_VARIABLE)
        if said not in (None, "", found.profile):
            raise Refused(
                f"{PROFILE_VARIABLE} is {said}, and the configuration says the profile {found.profile}: "
                "unset it"
            )
        system.setProperty(PROFILE, found.profile)
