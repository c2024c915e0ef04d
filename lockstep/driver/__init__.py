"""A run, in the driver: the workers, the looks at their surroundings, the end."""
