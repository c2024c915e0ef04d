"""Hudi's timeline, read without Spark."""
