"""What one measures again on a GPU of one's own: bias against Nsight Compute, and times by other tools."""
