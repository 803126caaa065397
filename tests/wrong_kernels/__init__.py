"""Kernels with deliberate faults, and the errors that their verification raises."""

from copy import copy

from gpu_kernels.catalog import KERNELS
from kernelwatch import Kernel


def _like(model: str, name: str, source: str = "wrong.cu") -> Kernel:
    wrong = copy(KERNELS[model])
    wrong.name, wrong.entry, wrong.file = name, name, f"tests/wrong_kernels/{source}"
    return wrong


_TILES, _VECTOR = {"rows": 64, "columns": 70}, {"size": 1000}

#: (kernel, its arguments, pattern of the error).
WRONG: list[tuple[Kernel, dict[str, int], str]] = [
    (_like(model, name), arguments, f"{name}.*{message}")
    for model, name, arguments, message in (
        ("offset_copy", "offset_copy_off_by_one", {"size": 1000, "offset": 3}, r"element \[3\] is"),
        ("transpose_read_coalesced", "transpose_skipped_last_tile", _TILES, r"element \[64, 0\] is a5a5a5a5"),
        ("transpose_read_coalesced", "transpose_missing_bounds_check", _TILES, "wrote past the end"),
        ("transpose_read_coalesced", "transpose_stale_output", _TILES, r"element \[1, 0\] is a5a5a5a5"),
        ("add_uncoalesced", "add_skipped_tail", _VECTOR, r"element \[992\] is a5a5a5a5"),
        ("add_uncoalesced", "add_missing_bounds_check", _VECTOR, "wrote past the end"),
        *(
            (model, name, dict(zip(("rows", "inner", "columns"), shape, strict=True)), r"element \[0, 0\] is")
            for model, name, shape in (
                ("matmul_tiled", "matmul_skipped_last_step", (33, 70, 40)),
                ("matmul_tiled", "matmul_exchanged_operands", (33, 33, 33)),
                ("matmul_corner_turning", "matmul_forgotten_turn", (32, 32, 32)),
            )
        ),
    )
]

#: (kernel, its arguments, pattern of the error) for kernels that write to an input.
WRITING: list[tuple[Kernel, dict[str, int], str]] = [
    (_like(model, name), arguments, f"{name}.*buffer {message}")
    for model, name, arguments, message in (
        ("add_uncoalesced", "add_with_second_output", _VECTOR, r"[0-9]+: wrote to b, .* element \[0\] is"),
        (
            *("transpose_read_coalesced", "transpose_clears_last_row", _TILES),
            r"0: wrote to input, .* element \[63, 0\] is 00000000, it was",
        ),
    )
]

#: (kernel, its arguments, pattern of the measuring process's error) for kernels that destroy their context or hang.
FAULTY: list[tuple[Kernel, dict[str, int], str]] = [
    (_like("offset_copy", f"offset_copy_{fault}", "faulty.cu"), {"size": 1000, "offset": 3}, message)
    for fault, message in (("illegal_address", "illegal|closed the connection"), ("endless", "took longer than"))
]
