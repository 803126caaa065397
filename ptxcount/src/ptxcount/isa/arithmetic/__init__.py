"""Arithmetic that NumPy does not have: carries, rounding modes, small floats."""
