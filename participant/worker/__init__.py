"""The Spark task: its threads, what each stage does, what it reports."""
