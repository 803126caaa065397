"""The same kernels timed by other tools, in one run: `python -m experiments.peers`.

It needs a GPU, Nsight Compute (`ncu` on PATH) and `requirements/peers.txt`. A tool that is missing becomes a row that
says so.
"""
