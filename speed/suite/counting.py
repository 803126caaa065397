"""Time to count large launches, without compilation; and peak memory of counting a launch of 2^24 threads."""

import uuid
from pathlib import Path
from typing import Any

import numpy as np

KERNELS = Path(__file__).parents[2] / "gpu_kernels" / "kernels"

#: Product of a sparse matrix in CSR format with a vector; each thread computes one row.
CSR = """
extern "C" __global__ void multiply_csr(
    float* y, const int* begins, const int* columns, const float* values, const float* x, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int place = begins[row]; place < begins[row + 1]; ++place) sum += values[place] * x[columns[place]];
    y[row] = sum;
}"""


class _Launch:
    """A launch to count. Its kernel is compiled in `setup`, which asv does not time."""

    timeout = 300.0
    number, repeat = 1, 5
    source: str | Path
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]

    def setup(self) -> None:
        from ptxcount.source.cuda_compiler import compile_source  # noqa: PLC0415 -- of the measured commit

        self.ptx = compile_source(self.source, "-DELEMENT=float").ptx
        self.arguments = self.make_arguments()

    def make_arguments(self) -> list[Any]:
        raise NotImplementedError

    def run(self) -> None:
        import ptxcount  # noqa: PLC0415 -- of the measured commit

        ptxcount.count(self.ptx, self.entry, self.grid, self.block, self.arguments)


class Csr(_Launch):
    """A sparse product with 262,144 rows of 1 to 32 numbers each."""

    source, entry, grid, block = CSR, "multiply_csr", (1024,), (256,)

    def make_arguments(self) -> list[Any]:
        """Return the arguments, with a random matrix and a random vector."""
        rng, rows = np.random.default_rng(1), 1 << 18
        begins = np.concatenate([[0], np.cumsum(rng.integers(1, 33, rows))]).astype(np.int32)
        columns = rng.integers(0, rows, begins[-1]).astype(np.int32)
        values, x = (rng.random(count, np.float32) for count in (begins[-1], rows))
        return [np.zeros(rows, np.float32), begins, columns, values, x, np.int32(rows)]

    def time_count_csr(self) -> None:
        """Time the launch."""
        self.run()


class StridedCopy(_Launch):
    """A copy by 2^24 threads of every second element."""

    source, entry, grid, block = KERNELS / "stride_copy.cu", "stride_copy", (1 << 16,), (256,)

    def make_arguments(self) -> list[Any]:
        """Return the arguments, with arrays of zeros."""
        size, stride = 1 << 24, 2
        return [*(np.zeros(size * stride, np.float32) for _ in range(2)), np.int64(size), np.int64(stride)]

    def time_count_strided_copy(self) -> None:
        """Time the launch."""
        self.run()

    def peakmem_count_strided_copy(self) -> None:
        """Count the launch for asv's peak memory, of which the arrays take 268 MB."""
        self.run()


class Product(_Launch):
    """A tiled product of two matrices of 512 x 512."""

    source, entry, grid, block = KERNELS / "matmul_tiled.cu", "matmul_tiled", (16, 16), (32, 8)

    def make_arguments(self) -> list[Any]:
        """Return the arguments, with three matrices of zeros."""
        return [*(np.zeros((512, 512), np.float32) for _ in range(3)), *[np.int64(512)] * 3]

    def time_count_product(self) -> None:
        """Time the launch."""
        self.run()


class Transpose(_Launch):
    """A transpose of a matrix of 4096 x 4096."""

    source, entry = KERNELS / "transpose.cu", "transpose_read_coalesced"
    grid, block = (128, 128), (32, 32)

    def make_arguments(self) -> list[Any]:
        """Return the arguments, with two matrices of zeros."""
        return [*(np.zeros((4096, 4096), np.float32) for _ in range(2)), *[np.int64(4096)] * 2]

    def time_count_transpose(self) -> None:
        """Time the launch."""
        self.run()


class Branches(_Launch):
    """One block of a kernel with 3,000 branches."""

    entry, grid, block = "branches", (1,), (32,)

    def setup(self) -> None:
        """Write the PTX. It differs each time, because ptxcount caches its analysis of a text."""
        branches = "".join(f"@%p1 bra L{number};\nL{number}:\n" for number in range(3000))
        body = f".reg .pred %p<2>;\nsetp.eq.u32 %p1, 1, 1;\n{branches}ret;\n"
        head = f"// {uuid.uuid4()}\n.version 8.0\n.target sm_90\n.address_size 64\n"
        self.ptx, self.arguments = f"{head}.visible .entry branches()\n{{\n{body}}}\n", []

    def time_count_branches(self) -> None:
        """Time the launch."""
        self.run()
