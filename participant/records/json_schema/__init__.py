"""JSON before which a schema of a registry is named."""
