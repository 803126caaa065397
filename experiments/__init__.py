"""Experiments to repeat on your own GPU: bias against Nsight Compute, and times by other tools."""
