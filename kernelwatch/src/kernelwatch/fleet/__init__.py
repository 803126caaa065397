"""A backfill over many GPUs, on Dask: `kernelwatch fleet COMMIT...`; see docs/fleet.md.

A task is one commit on one GPU, and returns the files that its run wrote. Each GPU takes neighbouring commits, so that
most reviews compare times of one GPU, and what a commit did not change is not measured again.
"""

#: What is said where Dask is missing.
INSTALL = "to install Dask: pip install 'kernelwatch[fleet]'"
