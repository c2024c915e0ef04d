"""One broker and one Spark for all conformance tests."""

from tests.integration.conftest import spark

__all__ = ["spark"]
