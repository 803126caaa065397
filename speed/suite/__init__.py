"""asv's benchmarks of kernelwatch's commands and of ptxcount's counting."""
