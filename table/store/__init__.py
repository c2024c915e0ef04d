"""Where tables keep their files."""
