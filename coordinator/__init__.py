"""The coordinator: the half of the protocol that decides. It never touches data."""
