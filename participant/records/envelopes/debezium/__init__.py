"""Debezium's change events: what each does to a row, and their order."""
