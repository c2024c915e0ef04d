"""Which table partition a row belongs to."""
