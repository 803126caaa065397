"""Runs the benchmark classes: a process a commit, a process that measures, known numbers reused."""
