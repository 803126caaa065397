"""Published times of the same launches on other GPUs."""

from __future__ import annotations

#: Lei Mao, "CUDA Coalesced Memory Access" (2023), latencies printed there.
GPU = "RTX 3090"

#: Kernel and flags -> milliseconds at 12800 x 12800 float32. To add a figure: one row.
MILLISECONDS = {
    ("transpose_read_coalesced", "-Xptxas -O3"): 5.337,
    ("transpose_read_coalesced", "-Xptxas -O0"): 7.624,
    ("transpose_write_coalesced", "-Xptxas -O3"): 2.924,
    ("transpose_write_coalesced", "-Xptxas -O0"): 5.220,
    ("transpose_read_write_coalesced", "-Xptxas -O3"): 2.345,
    ("transpose_read_write_coalesced", "-Xptxas -O0"): 4.804,
}

#: H. H. B. Sorensen, "CUDA Performance Tuning: Memory Optimization" (a lecture of DTU), 2880 x 2880 float64 on a GPU of
#: 288 GB/s: the last step, and its printed DRAM utilisation in %.
LECTURE = ("transpose_read_write_coalesced_unpadded", "53.6")
