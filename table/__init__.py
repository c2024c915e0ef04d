"""The table: the only truth. A port every table kind implements, the service in the driver, and Hudi."""
