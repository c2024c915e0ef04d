"""Programs that the bench starts as processes of their own."""
