"""Python looks for a module of this name as it starts: the seeded bug is in before anything is imported."""

from tests.seeded import put_in_named

put_in_named()
