"""From source to machine code: nvcc, the cache of its output, and facts parsed from this output."""
