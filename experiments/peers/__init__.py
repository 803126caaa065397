"""The same kernels timed by other tools, in one run: `python -m experiments.peers`.

Needs a GPU, what the suite needs, Nsight Compute (`ncu` on PATH) and `requirements/peers.txt`; a tool that is missing
becomes a row that says so.
"""
