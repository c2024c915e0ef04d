"""Rows that one worker has read and another writes: docs/exchange.md."""
