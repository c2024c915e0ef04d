"""What starts processes: spark-submit, the jars it needs, what makes it start sooner."""
