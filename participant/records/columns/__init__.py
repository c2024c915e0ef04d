"""Columns that do not come from the value's field of the same name: `record.columns` and `record.rest`."""
