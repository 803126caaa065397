"""Register values of all threads of some blocks, and the warps of these threads."""
