"""What formats share whose records name the schema that they were written by."""
