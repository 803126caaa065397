"""asv benchmarks of kernelwatch's commands, and of counting by ptxcount."""
