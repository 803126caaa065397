"""Executes the classes of benchmarks: a process a commit, one that measures, numbers that are known taken over."""
