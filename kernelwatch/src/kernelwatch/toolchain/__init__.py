"""From source to machine code: nvcc, the cache of what it made, and what is read off its output."""
