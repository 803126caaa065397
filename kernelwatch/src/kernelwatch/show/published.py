"""What others published of the same launches on GPUs of their own, to stand beside what is measured here."""

from __future__ import annotations

from gpu_kernels.sweep import Launch

#: Lei Mao, "CUDA Coalesced Memory Access" (2023), latencies printed there.
GPU = "RTX 3090"


def _printed(kernel: str, optimised: float, plain: float) -> dict[Launch, float]:
    """Return milliseconds of a kernel with both of that article's optimisation levels."""
    square = {"rows": 12800, "columns": 12800}
    times = zip(("-Xptxas -O3", "-Xptxas -O0"), (optimised, plain), strict=True)
    return {Launch(kernel, "float32", flags, square): ms for flags, ms in times}


#: Launch -> milliseconds. To add a figure: one row.
MILLISECONDS: dict[Launch, float] = {
    **_printed("transpose_read_coalesced", 5.337, 7.624),
    **_printed("transpose_write_coalesced", 2.924, 5.220),
    **_printed("transpose_read_write_coalesced", 2.345, 4.804),
}

#: H. H. B. Sorensen, "CUDA Performance Tuning: Memory Optimization" (a lecture of DTU): 2880 x 2880 float64 on a GPU of
#: 288 GB/s. Its version -> the kernel here, milliseconds, DRAM utilisation in % as printed.
LECTURE: dict[str, tuple[str, float, str]] = {
    "v1 serial": ("transpose_serial", 2522, "< 0.1"),
    "v2 per row": ("transpose_row_per_thread", 4.38, "10.5"),
    "v3 per elm": ("transpose_write_coalesced", 1.53, "30.1"),
    "v4 smem": ("transpose_tile_load_transposed", 0.98, "47.0"),
    "v5 smemt": ("transpose_read_write_coalesced_unpadded", 0.86, "53.6"),
}

#: "Coalesced Memory Access in CUDA for High-Performance Computing" (an article): kernel -> microseconds of a sum of two
#: vectors. It names neither GPU nor size.
ARTICLE = {"add_coalesced": 232, "add_uncoalesced": 540}
