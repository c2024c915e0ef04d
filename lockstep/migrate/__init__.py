"""Coming from elsewhere: another sink's configuration becomes a pipeline's, and its offsets the table's.

Pure, but for `given` (files), `theirs` (a broker, a store, a table) and what a command does with the result.
"""
