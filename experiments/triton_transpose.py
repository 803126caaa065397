"""A transpose in Triton, in the manner of its tutorials: blocks loaded, turned and stored, their shapes autotuned."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

_CONFIGS = [
    triton.Config({"ROWS": rows, "COLUMNS": columns}, num_warps=warps)
    for rows in (32, 64, 128)
    for columns in (32, 64, 128)
    for warps in (4, 8)
]


@triton.autotune(configs=_CONFIGS, key=["rows", "columns"])  # type: ignore[untyped-decorator]
@triton.jit  # type: ignore[untyped-decorator]
def _kernel(source, output, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, N803 -- Triton's own types
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    block = tl.load(source + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(output + column[:, None] * rows + row[None, :], tl.trans(block), mask=tl.trans(inside))


def transpose(source: Any, output: Any) -> None:
    """Transpose a matrix, of PyTorch, into another on the current stream."""
    rows, columns = source.shape

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(rows, meta["ROWS"]), triton.cdiv(columns, meta["COLUMNS"])

    _kernel[grid](source, output, rows, columns)
