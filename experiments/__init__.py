"""Experiments to repeat on your own GPU: times against Nsight Compute and other tools, and properties of the memory."""
