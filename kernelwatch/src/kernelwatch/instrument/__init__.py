"""The timing of kernels: clock, graph replays, buffers, verification, machine facts."""
