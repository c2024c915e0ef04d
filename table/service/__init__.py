"""The table service: the driver's side of the table, which workers call."""
