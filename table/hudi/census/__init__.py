"""What a Hudi table is made of, counted without Spark: `files.py`, `columns.py`, and who reads them."""
