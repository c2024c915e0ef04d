"""Where schemas of records are kept by others: a registry, and what is remembered of it."""
