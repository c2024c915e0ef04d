"""The application: configuration, the spark-submit entry, the command line."""
