"""What records hold: from bytes to columns, each row tied to its offset."""
