"""Hudi's write client in the driver: begin, commit, roll back, under the table's lock."""
