"""Verification of outputs on a fake GPU, which executes the kernels and the comparison on the CPU."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelwatch
from gpu_kernels import catalog
from kernelwatch import outputs
from kernelwatch.instrument import check_output, inputs, tolerance
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.job_messages import Job
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.timed_job import TimedJob
from kernelwatch.instrument.tolerance import UlpTolerance, WrongOutputError
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import to_dtype
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import measure_launch
from tests.wrong_kernels import WRITING, WRONG

GUARD = 64

#: Structs of 12 bytes, float3 in C++.
TRIPLE = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4")])


@pytest.mark.parametrize("has_pool", [True, False])
@pytest.mark.parametrize(
    ("kernel", "arguments", "message"), WRONG + WRITING, ids=lambda value: getattr(value, "name", "")
)
def test_wrong_kernels_are_rejected(
    kernel: Any, arguments: dict[str, int], message: str, has_pool: bool, small_l2_gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Without the pool of references on the device, the reference is uploaded in pieces for each comparison."""
    monkeypatch.setitem(catalog.KERNELS, kernel.name, kernel)
    session = Session()
    if not has_pool:
        session.references.release()
    with pytest.raises(WrongOutputError, match=message):
        measure_launch(small_l2_gpu, Launch(kernel.name, arguments=arguments), session)


TRANSPOSE = "transpose_read_coalesced rows=97 columns=101"
#: Launch, array, byte of the array (negative: from its end) or of the guard, and the error without the buffer. A guard
#: has at least 512 bytes and ends at a multiple of 512. In pieces, bytes 4097 and 16 * 2003 - 1 are next to a border.
FLIPPED: list[tuple[str, str, str, int, str]] = [
    # Bytes of an output, at its ends and at borders of elements and pieces.
    *(
        (f"{TRANSPOSE} {dtype}", "output", "content", byte, f"element [{row}, {column}] is")
        for dtype, size, positions in (("int8", 1, (0, 1, 15, 16, 4097, -1)), ("complex128", 16, (0, 15, 16, 4097, -1)))
        for byte in positions
        for row, column in [divmod(byte % (97 * 101 * size) // size, 97)]
    ),
    # The first and the last byte of an output's guard.
    *(
        (f"{TRANSPOSE} {dtype}", "output", "guard", byte, f"the first wrong byte is {byte} bytes after the end")
        for dtype, size in (("int8", 1), ("complex128", 16))
        for byte in (0, 512 + -(97 * 101 * size) % 512 - 1)
    ),
    # Bytes of two inputs and their guards.
    *(
        (f"add_uncoalesced size={size} float64", array, part, byte, expected_message)
        for size in (1000, 15000)
        for array in "ab"
        for part, byte, expected_message in (
            ("content", 0, "element [0] is"),
            ("content", 16 * 2003 - 1, f"element [{(16 * 2003 - 1) % (8 * size) // 8}] is"),
            ("content", -1, f"element [{size - 1}] is"),
            ("guard", 500, "the first wrong byte is 500 bytes after the end"),
        )
    ),
]


@pytest.mark.parametrize("is_in_pieces", [False, True])
@pytest.mark.parametrize("in_last_buffer", [False, True])
@pytest.mark.parametrize(("text", "name", "part", "byte", "message"), FLIPPED)
def test_flipped_bits_are_found(
    text: str, name: str, part: str, byte: int, message: str, in_last_buffer: bool, is_in_pieces: bool,
    small_l2_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Any output, input and guard is checked, in the first and the last buffer, and in repetitions of a block."""
    session = Session()
    if is_in_pieces:
        monkeypatch.setattr(check_output, "_PIECE_BYTES", 4096)
        monkeypatch.setattr(inputs, "BLOCK", 16 * 2003)
        inputs.input_block.cache_clear()
        session.references.release()
    once, index = TimedJob.launch_on_all_sets, 0

    def flip(self: TimedJob, job: Job) -> None:
        nonlocal index
        once(self, job)
        array = next(job_array for job_array in job.arrays if job_array.name == name)
        index = self.rotation.sets - 1 if in_last_buffer else 0
        place = array.nbytes + byte if part == "guard" else byte % array.nbytes
        small_l2_gpu.view(self.rotation.address(array, index))[place] ^= 64

    monkeypatch.setattr(TimedJob, "launch_on_all_sets", flip)
    with pytest.raises(WrongOutputError) as raised:
        measure_launch(small_l2_gpu, Launch.parse(text), session)
    assert f"buffer {index}: {'' if name == 'output' else f'wrote to {name}, '}" in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize("byte", [0, 13, 17, 35])
def test_whole_wrong_element_is_reported(byte: int, small_l2_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements of 12 bytes may lie in two of the compared words of 16 bytes."""
    arrays = [outputs("out", "n", TRIPLE), kernelwatch.inputs("a", "n", TRIPLE)]
    text = """extern "C" __global__ void triples(float3* out, const float3* a, long long n) {
        const long long i = blockIdx.x * 256 + threadIdx.x; if (i < n) out[i] = a[i]; }"""
    triples = kernelwatch.Kernel("triples", [*arrays, "n"], 256, over=("n",), text=text, reference=lambda a: a)
    monkeypatch.setitem(catalog.KERNELS, triples.name, triples)
    launch_once, right = TimedJob.launch_on_all_sets, np.empty(0, np.uint8)

    def flip(self: TimedJob, job: Job) -> None:
        nonlocal right
        launch_once(self, job)
        memory = small_l2_gpu.view(self.rotation.address(job.arrays[0], 0))
        right = memory[:36].copy()
        memory[byte] ^= 64

    monkeypatch.setattr(TimedJob, "launch_on_all_sets", flip)
    with pytest.raises(WrongOutputError) as raised:
        measure_launch(small_l2_gpu, Launch(triples.name, arguments={"n": 300}))
    wrong = right.copy()
    wrong[byte] ^= 64
    actual, expected = (content.reshape(-1, 12)[byte // 12].tobytes() for content in (wrong, right))
    assert tolerance.format_difference("", [byte // 12], actual, expected) in str(raised.value)


def test_inputs_of_two_dtypes_are_verified(small_l2_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [outputs("out", "n", "int32"), kernelwatch.inputs("a", "n"), kernelwatch.inputs("b", "n", "int32")]
    text = """extern "C" __global__ void chosen(int* out, const float* a, const int* b, long long n) {
        const long long i = blockIdx.x * 256 + threadIdx.x; if (i < n) out[i] = a[i] > 0 ? b[i] : 0; }"""
    chosen = kernelwatch.Kernel(
        "chosen", [*arrays, "n"], 256, over=("n",), text=text, reference=lambda a, b: np.where(a > 0, b, 0)
    )
    monkeypatch.setitem(catalog.KERNELS, chosen.name, chosen)
    assert len(measure_launch(small_l2_gpu, Launch(chosen.name, arguments={"n": 3000}))[0].samples) == 3


@pytest.mark.parametrize(
    ("actual", "expected", "ulp", "near"),
    [
        (1.0 + 2**-10, 1.0, 1.0, True),
        (1.0 + 2**-9, 1.0, 1.0, False),
        (-8.0, -8.0 - 2**-8, 0.5, True),
        # References below 1 have the tolerance of 1, because sums may cancel.
        (2**-11, 0.0, 0.5, True),
        (2**-10, 0.0, 0.5, False),
        (float("nan"), 1.0, 100.0, False),
        (float("inf"), 1.0, 100.0, False),
    ],
)
def test_float16_tolerance_is_in_ulps(actual: float, expected: float, ulp: float, near: bool) -> None:
    """A unit in the last place of float16 is 2**-10 from 1 to 2, and 2**-7 from 8 to 16."""
    message = "" if near else r"element \[0, 0\] is .* units in the last"
    _check_near(np.array([[actual]]), np.array([[expected]]), ulp, message)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tolerance_of_the_largest_value_is_finite(dtype: str) -> None:
    """No finite value is above the largest, so the distance to the value below it is the unit in the last place."""
    infinity, zero = np.array([np.inf, 0.0], to_dtype(dtype))
    largest = np.nextafter(infinity, zero)
    second = np.nextafter(largest, zero)
    third = np.nextafter(second, zero)
    actual = np.array([largest, second, third, zero, -largest, infinity, np.nan], dtype)
    with np.errstate(over="ignore"):  # -largest - largest
        near = UlpTolerance(dtype, 1.0).is_near(actual, np.full(len(actual), largest, np.float64))
    assert near.tolist() == [True, True, False, False, False, False, False]


def _check_near(values: NDArray[Any], reference: NDArray[Any], ulp: float, message: str, behind: int = POISON) -> None:
    """Check values and their guard, whose last byte is `behind`; expect the error `message` unless it is empty."""
    raw = np.concatenate([values.astype(np.float16).reshape(-1).view(np.uint8), np.full(GUARD, POISON, np.uint8)])
    raw[-1] = behind

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = raw[start : start + len(into)]

    with pytest.raises(WrongOutputError, match=message) if message else nullcontext():
        tolerance.check_within_tolerance("case", reference, GUARD, read, UlpTolerance("float16", ulp))


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_chunks_report_the_first_difference(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tolerance, "_CHUNK_ELEMENTS", chunk)
    right = np.arange(63.0).reshape(7, 9)
    wrong = right.copy()
    wrong[5, 3] += 1
    wrong[6, 8] += 1
    _check_near(right, right, ulp=0.0, message="")
    message = r"case: element \[5, 3\] is 49\.0, the reference is 48\.0, with a tolerance of 0"
    _check_near(wrong, right, ulp=0.0, message=message)
    message = f"case: wrote past the end of its output; the first wrong byte is {GUARD - 1} bytes after the end"
    _check_near(right, right, ulp=0.0, message=message, behind=0)


def test_device_reports_element_beyond_tolerance(small_l2_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    (wrong,) = (kernel for kernel, *_ in WRONG if kernel.name == "matmul_skipped_last_step")
    monkeypatch.setitem(catalog.KERNELS, wrong.name, wrong)
    with pytest.raises(
        WrongOutputError, match=r"element \[0, 0\] is \S+, the reference is \S+, with a tolerance of 0\.5 units"
    ):
        measure_launch(small_l2_gpu, Launch(wrong.name, "float16", arguments={"rows": 33, "inner": 70, "columns": 40}))
