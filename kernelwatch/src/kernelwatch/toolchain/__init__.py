"""From source to machine code: nvcc, the cache of its output, and facts that are parsed from the output."""
