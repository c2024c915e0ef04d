"""One archive of what a colleague would ask for, without a secret in it."""
