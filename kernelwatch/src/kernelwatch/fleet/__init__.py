"""A backfill over many GPUs, on Dask: `make fleet COMMITS=...`, `kernelwatch fleet`; see docs/fleet.md.

Two GPUs of one kind differ by more than the changes that the review looks for. So a series, which is one configuration
over all commits, is measured by one GPU. What no GPU has a part in is measured commit by commit, by any worker.

What is stored is the only memory: a plan is made from it. The engine has workers do their task for each shard, merges
what comes back, and plans anew whatever was lost.
"""

#: What is said where Dask is missing.
INSTALL = "to install Dask: pip install 'kernelwatch[fleet]'"
