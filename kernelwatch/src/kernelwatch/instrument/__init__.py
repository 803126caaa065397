"""The timing of kernels on a GPU: buffers, replays of CUDA graphs, verification, and the facts of the machine."""
