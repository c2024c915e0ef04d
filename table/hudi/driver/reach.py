"""The driver's JVM is told how an object store is reached: Hadoop's settings, after it has started.

So nothing of them is on a command line, in a file or among Spark's own properties, which are logged, shown
and kept. Keys are not even among Hadoop's: where executors are in this JVM, they are with the process's
credentials (`UserGroupInformation`), where Hadoop's connector looks first and nothing else does. Executors
elsewhere get Hadoop's settings with their tasks, and then the keys are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi.driver.connector import SETTING, sparing_connector
from table.hudi.driver.profile import SDKS_OWN, watched_profile
from table.store.connectors import HadoopSettings, hadoop_settings
from table.store.location import S3, Location
from table.store.settings import StoreSettings

OF_THE_USER = "user:///"
"""Hadoop's provider of what the process's own credentials hold."""
PROVIDERS = "hadoop.security.credential.provider.path"
DEFAULTS = "core-default.xml"
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
    is_here = str(context.master).startswith(HERE)
    for name, value in found.plain.items():
        watched = is_here and value == SDKS_OWN
        conf.set(name, watched_profile(jvm, context._gateway) if watched else value)
    for name, value in found.tuning.items():
        if _unsaid(conf, f"fs.s3a.{name}"):
            conf.set(f"fs.s3a.bucket.{location.authority}.{name}", value)
    if is_here:
        if location.scheme == S3 and _unsaid(conf, SETTING):
            conf.set(SETTING, sparing_connector(jvm, context._gateway))
        _keep(jvm, found.secret)
        given = [one for one in (conf.get(PROVIDERS) or "").split(",") if one and one != OF_THE_USER]
        conf.set(PROVIDERS, ",".join([OF_THE_USER, *given]))
    else:
        for name, value in found.secret.items():
            conf.set(name, value)
    return conf


def _unsaid(conf: Any, name: str) -> bool:
    """Whether nobody has said anything of it, but Hadoop itself."""
    return set(conf.getPropertySources(name) or [DEFAULTS]) <= {DEFAULTS}


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
