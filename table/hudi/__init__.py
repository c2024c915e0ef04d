"""Apache Hudi behind the table port."""
