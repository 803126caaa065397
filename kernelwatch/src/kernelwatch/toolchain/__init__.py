"""From source to machine code: nvcc, the cache of its output, and facts read off that output."""
