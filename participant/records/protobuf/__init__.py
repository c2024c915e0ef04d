"""Protobuf as a format of records."""
