"""Times that others published of the same launches on their own GPUs."""

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

#: H. H. B. Sorensen, "CUDA Performance Tuning: Memory Optimization" (a lecture of DTU): 2880 x 2880 float64 on a GPU of
#: 288 GB/s. The kernel here -> its version, milliseconds, DRAM utilisation in % as printed.
LECTURE = {
    "transpose_serial": ("v1 serial", "2522", "< 0.1"),
    "transpose_row_per_thread": ("v2 per row", "4.38", "10.5"),
    "transpose_write_coalesced": ("v3 per elm", "1.53", "30.1"),
    "transpose_tile_load_transposed": ("v4 smem", "0.98", "47.0"),
    "transpose_read_write_coalesced_unpadded": ("v5 smemt", "0.86", "53.6"),
}

#: "Coalesced Memory Access in CUDA for High-Performance Computing" (an article): kernel -> microseconds of a sum of two
#: vectors. It names neither GPU nor size.
ARTICLE = {"add_coalesced": 232, "add_uncoalesced": 540}
