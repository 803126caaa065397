"""Arithmetic that NumPy lacks: carries, rounding modes, small floats."""
