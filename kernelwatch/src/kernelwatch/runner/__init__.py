"""Runs of the benchmark classes: one process per commit, one process that measures, and reuse of stored numbers."""
