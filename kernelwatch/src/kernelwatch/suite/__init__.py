"""The benchmarks of a project: its suite, its sweeps, and their metrics."""
