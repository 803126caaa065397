"""Transactions of one access, and the counters of a launch."""
