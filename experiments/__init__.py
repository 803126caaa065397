"""What the figures in docs/ were measured with; not part of the suite: `python -m experiments.NAME`."""
