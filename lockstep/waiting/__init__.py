"""Waiting until the table has what a script asks for."""
