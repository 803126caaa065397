"""The stored results of runs: reading, writing and checking."""
