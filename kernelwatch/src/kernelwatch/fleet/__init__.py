"""A backfill over many GPUs, on Dask: `kernelwatch fleet COMMIT...`; see docs/fleet.md.

A task is one commit on one GPU, and returns the files that its run wrote. Each GPU takes neighbouring commits: most
reviews then compare times of one GPU, and unchanged numbers are reused.
"""

#: Advice if Dask is missing.
INSTALL = "to install Dask, in a clone: make .venv/fleet, or pip install './kernelwatch[fleet]'"
