"""Values of registers over the threads of a block, and their warps."""
