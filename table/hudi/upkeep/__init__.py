"""Hudi's services: compaction, clustering, cleaning, and the sweep of what nobody names."""
