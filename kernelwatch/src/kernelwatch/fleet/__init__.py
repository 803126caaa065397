"""Measuring many commits on many GPUs, with Dask: `kernelwatch fleet COMMIT...`; see docs/fleet.md.

A task measures one commit on one GPU, and returns the files that its run wrote. Each GPU gets neighbouring commits, so
that most reviews compare times of one GPU, and unchanged numbers are reused.
"""

#: Advice in the error message if Dask is missing.
INSTALL = "to install Dask, in a clone: make .venv/fleet, or pip install './kernelwatch[fleet]'"
