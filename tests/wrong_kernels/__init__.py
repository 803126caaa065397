"""Kernels that are wrong on purpose, each with how the verification names its fault."""

from __future__ import annotations

from copy import copy

from gpu_kernels.catalog import KERNELS
from kernelwatch import Kernel


def _like(model: str, name: str, source: str = "wrong.cu") -> Kernel:
    wrong = copy(KERNELS[model])
    wrong.name, wrong.entry, wrong.file = name, name, f"tests/wrong_kernels/{source}"
    return wrong


#: (kernel, its arguments, what the verification says).
WRONG: list[tuple[Kernel, dict[str, int], str]] = [
    (
        _like("offset_copy", "offset_copy_off_by_one"),
        {"size": 1000, "offset": 3},
        r"offset_copy_off_by_one.*element \[3\] is",
    ),
    (
        _like("transpose_read_coalesced", "transpose_skipped_last_tile"),
        {"rows": 64, "columns": 70},
        r"transpose_skipped_last_tile.*element \[64, 0\] is a5a5a5a5",
    ),
    (
        _like("transpose_read_coalesced", "transpose_missing_bounds_check"),
        {"rows": 64, "columns": 70},
        "transpose_missing_bounds_check.*wrote behind the end",
    ),
    (
        _like("transpose_read_coalesced", "transpose_stale_output"),
        {"rows": 64, "columns": 70},
        r"transpose_stale_output.*element \[1, 0\] is a5a5a5a5",
    ),
    (
        _like("add_uncoalesced", "add_skipped_tail"),
        {"size": 1000},
        r"add_skipped_tail.*element \[992\] is a5a5a5a5",
    ),
    (
        _like("add_uncoalesced", "add_missing_bounds_check"),
        {"size": 1000},
        "add_missing_bounds_check.*wrote behind the end",
    ),
    (
        _like("matmul_tiled", "matmul_skipped_last_step"),
        {"rows": 33, "inner": 70, "columns": 40},
        r"matmul_skipped_last_step.*element \[0, 0\] is",
    ),
    (
        _like("matmul_tiled", "matmul_exchanged_operands"),
        {"rows": 33, "inner": 33, "columns": 33},
        r"matmul_exchanged_operands.*element \[0, 0\] is",
    ),
    (
        _like("matmul_corner_turning", "matmul_forgotten_turn"),
        {"rows": 32, "inner": 32, "columns": 32},
        r"matmul_forgotten_turn.*element \[0, 0\] is",
    ),
]

#: (kernel, its arguments, what the verification on a device says): kernels that write to an input, here the last one.
WRITING: list[tuple[Kernel, dict[str, int], str]] = [
    (
        _like("add_uncoalesced", "add_with_second_output"),
        {"size": 1000},
        r"add_with_second_output.*buffer [0-9]+: wrote to b, .* element \[0\] is",
    ),
    (
        _like("transpose_read_coalesced", "transpose_clears_last_row"),
        {"rows": 64, "columns": 70},
        r"transpose_clears_last_row.*buffer 0: wrote to input, .* element \[63, 0\] is 00000000, it was",
    ),
]

#: (kernel, its arguments, what the measuring process says): kernels after which a context is of no use.
FAULTY: list[tuple[Kernel, dict[str, int], str]] = [
    (_like("offset_copy", f"offset_copy_{fault}", "faulty.cu"), {"size": 1000, "offset": 3}, message)
    for fault, message in (("illegal_address", "illegal|process stopped"), ("endless", "took longer than"))
]
