"""The stored results of runs: reading, checking, merging and writing; and git, which knows the commits."""
