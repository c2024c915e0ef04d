"""The reference kind of table: in the memory of one process, without Spark, without files."""
