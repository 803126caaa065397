"""What docs/measurements.md was measured with, on a GPU; not part of the suite: `python -m experiments.NAME`."""
