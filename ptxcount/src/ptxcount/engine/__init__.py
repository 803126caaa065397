"""Execution of a launch: basic blocks, the schedule of threads, and the merging of accesses by ptxas."""
