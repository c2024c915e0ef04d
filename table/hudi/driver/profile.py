"""The class by which the driver's JVM has the keys of a profile of AWS's files: jvm/WatchedProfile.java."""

from __future__ import annotations

from typing import Any

from table.hudi.driver.compiled import HAVE_PACKAGES, java_class

NAME = "org.apache.hadoop.fs.s3a.WatchedProfile"
SOURCE = "WatchedProfile.java"
BESIDE = "org.apache.hadoop.fs.s3a.S3AFileSystem"
SDKS_OWN = "com.amazonaws.auth.profile.ProfileCredentialsProvider"
"""Which it stands in for."""


def watched_profile(jvm: Any, gateway: Any) -> str:
    """Its name, by which Hadoop finds it from here on. Raises `Refused` where this Hadoop is another."""
    java_class(
        jvm,
        gateway,
        name=NAME,
        source=SOURCE,
        beside=BESIDE,
        misfit="what reads a profile's keys does not fit this Hadoop",
        advice=HAVE_PACKAGES,
    )
    return NAME
