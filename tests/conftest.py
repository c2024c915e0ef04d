"""Fixtures that tests of several folders share."""

from tests.broker_fixture import broker, make_topic

__all__ = ["broker", "make_topic"]
