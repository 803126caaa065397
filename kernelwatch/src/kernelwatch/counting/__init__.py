"""Memory transactions of a kernel, counted on the CPU."""
