"""Execution of a launch: basic blocks, the schedule of threads, and accesses as ptxas merges them."""
