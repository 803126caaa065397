"""Stored results of runs: read, written and checked."""
