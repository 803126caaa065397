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
