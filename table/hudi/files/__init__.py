"""Hudi's files as workers write them: base files, log files, buckets, keys."""
