"""Avro as a format of records."""
