"""Benchmarks: Lockstep and what people run today, side by side on one machine."""
