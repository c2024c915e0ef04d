"""A world of its own: one table on an object store, drivers that succeed each other, workers, a sweep.

Pure: virtual time, one seed, no thread, no sleep. The store is a part like any other: a request may fail,
land and not be answered, or land late, when its sender has given up or died. The rules are the project's own:
the fence, the put on condition, the comparison of clocks, the sweep, the chain of commits. What Hudi does is
modelled step by step, as docs/stores.md says, and each step is one request or several, so that a pause, a
death or a lost answer may be between any two.

`python -m tests.simulation.bucket --help`.
"""
