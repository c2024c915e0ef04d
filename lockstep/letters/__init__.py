"""Dead letters: looked at, tried with another schema, and sent back to where they came from."""
