"""A PTX executor that counts memory transactions exactly, on any machine.

It executes what nvcc made of a CUDA kernel, for a whole grid, vectorised over threads with NumPy, and counts the
requests, sectors and wavefronts that Nsight Compute would read on the chip.
"""
