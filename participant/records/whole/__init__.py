"""Values, or keys, that are one column as they are: text, or bytes."""
