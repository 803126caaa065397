"""The command ``python -m benchmarks.counters``: memory transactions of a kernel, counted without a GPU."""
