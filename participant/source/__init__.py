"""What is consumed: source partitions, raw batches of records, dead letters."""
