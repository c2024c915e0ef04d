"""Where a table stands in its source, and how an operator moves it."""
