"""What values are wrapped in, and what that says of rows."""
