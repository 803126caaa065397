"""Contents of arrays before and after a launch, on host and device."""

import itertools
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelwatch
from gpu_kernels import catalog, references
from kernelwatch.counting import launch_counts
from kernelwatch.errors import ArgumentError
from kernelwatch.instrument import buffers, build_job, helper_kernels, inputs
from kernelwatch.instrument.buffers import Rotation
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.job_messages import DeviceArray
from kernelwatch.kernel import Launch, geometry
from kernelwatch.kernel.arguments import ArrayArgument, to_dtype
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import FACTS
from tests.own_kernels import CASES

Array = NDArray[Any]


@pytest.mark.parametrize(("start", "length"), [(0, 10), (inputs.BLOCK - 3, 10), (5, 2 * inputs.BLOCK + 9), (10**12, 9)])
def test_input_repeats_the_random_block(start: int, length: int) -> None:
    first = start % inputs.BLOCK
    again = np.concatenate([inputs.input_block()] * 4)
    repeated = inputs.repeat_block(None, start, length)
    assert np.array_equal(repeated, again[first : first + length])
    assert not repeated.flags.writeable, "a reference could write into the inputs of others"


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128", "bfloat16"])
def test_inputs_have_exact_sums_and_products(dtype: str) -> None:
    """Inputs are finite and symmetric, and have LEVELS values. Products are exact in float32 and float64."""
    kind = to_dtype(dtype)
    block = inputs.input_block(dtype)[: 16 * 6000].view(kind)
    cpu = [inputs.make_counter_input((40, 150), dtype, place, is_exact=True).reshape(-1) for place in (0, 1)]
    assert not np.array_equal(cpu[0], cpu[1])
    for values in (block, *cpu):
        wide = values.astype(np.complex128)
        assert np.isfinite(wide).all()
        assert len(np.unique(wide.real)) == inputs.LEVELS
        assert wide.real.max() == -wide.real.min()
        assert np.array_equal((values + values[::-1]).astype(np.complex128), wide + wide[::-1])
    if kind.itemsize >= 4 and kind.kind == "f":
        first, second = (values.reshape(40, 150) for values in cpu)
        product = first.astype(np.float64) @ second.T.astype(np.float64)
        assert np.array_equal(first @ second.T, product.astype(kind)), "the product of matrices is rounded"
        assert np.abs(product).max() > 10


@pytest.mark.parametrize(
    ("values", "dtype", "limit", "ends"),
    [
        ("random", "int8", None, (-128, 127)),
        ("random", "uint8", None, (0, 255)),
        ("bits", "int32", 7, (0, 6)),
        ("zeros", "float32", None, (0, 0)),
    ],
)
def test_values_cover_their_range(values: str, dtype: str, limit: int | None, ends: tuple[int, int]) -> None:
    content = inputs.make_content(ArrayArgument("a", (30000,), np.dtype(dtype), "in", values, limit=limit))
    assert (content.min(), content.max()) == ends


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros(3), r"the shape \(3,\), not \(4,\)"),
        ([[1], [1, 2]], "no array of float32: setting an array element with a sequence"),
        (["a"] * 4, "no array of float32: could not convert string to float"),
    ],
)
def test_values_that_do_not_fit_are_refused(returned: Any, message: str) -> None:
    argument = ArrayArgument("a", (4,), np.dtype("float32"), "in", lambda: returned)
    with pytest.raises(ArgumentError, match=f"^a: the function in values= returns {message}"):
        inputs.make_content(argument)


@pytest.mark.parametrize("block", [inputs.BLOCK, 16 * 3001])
@pytest.mark.parametrize("exact_dtype", [None, "float32"])
@pytest.mark.parametrize("lengths", [[], [4000], [4000, 4000], [400] * 8, [70_000], [70_000, 12], [12, 70_000]])
def test_inputs_do_not_overlap(
    lengths: list[int], exact_dtype: str | None, block: int, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs lie at least 512 bytes apart, and hold what the host expects. Arrays of the plain copy lie apart, too."""
    monkeypatch.setattr(inputs, "BLOCK", block)
    monkeypatch.setattr(inputs, "_tiled_blocks", {})
    inputs.input_block.cache_clear()
    dtype = exact_dtype or "int8"
    facts: Any = {"dtype": dtype, "values": "exact" if exact_dtype else "bits"}
    shapes = [(length // np.dtype(dtype).itemsize,) for length in (4000, *lengths)]
    arrays = [DeviceArray(name="out", direction="out", shape=shapes[0], **facts)]
    for ordinal, shape in enumerate(shapes[1:]):
        arrays.append(DeviceArray(name=f"in {ordinal}", direction="in", shape=shape, ordinal=ordinal, **facts))
    rotation = Rotation(arrays, sets=5, room=(4000 + sum(lengths)) // 2)
    places = [place for index in range(5) for place in zip(rotation.addresses(index)[1:], lengths, strict=True)]
    assert len(places) == 5 * len(lengths)
    assert all(start + length + 512 <= next_start for (start, length), (next_start, _) in itertools.pairwise(places))
    assert rotation.addresses(5 + 2) == rotation.addresses(2), "launches use the five sets in turn"
    for index, array in itertools.product(range(5), arrays[1:]):
        content = array.repeat_block(buffers.pad_length(array.nbytes))
        assert (gpu.view(rotation.address(array, index))[: len(content)] == content).all()
    inputs.input_block.cache_clear()
    for length in (16, (4000 + sum(lengths)) // 2):  # bytes that the plain copy reads
        for starts in zip(*rotation.slices(length), strict=True):
            assert all(next_start - start >= length + 512 for start, next_start in itertools.pairwise(starts))
            assert starts[-1] + length + 512 <= starts[0] + gpu.allocations[starts[0]].size


@pytest.mark.parametrize("length", [1, 3, 5, 6, 7, 12, 16])
def test_elements_may_have_any_size(length: int) -> None:
    dtype = np.dtype([("bytes", "u1", (length,))])
    content = inputs.make_counter_input((5, 7), dtype, 0, is_exact=False)
    assert (content.shape, content.dtype, bool(content["bytes"].any())) == ((5, 7), dtype, True)


@pytest.mark.parametrize(("set_bytes", "sets"), [(1 << 19, 180 * 2), (1 << 30, 1), (120 << 20, 2)])
def test_rotation_exceeds_the_l2(set_bytes: int, sets: int) -> None:
    """The sets have at least three times the bytes of the L2, here 3 * 60 MiB."""
    assert buffers.count_sets(set_bytes, l2_bytes=60 << 20) == sets


#: Array that a reference returns -> reference that copies the input, except for one element.
RETURNED: dict[str, Callable[[Array, Array], Array]] = {
    "another array": lambda output, input: np.concatenate([output[:1], input[1:]]),
    "the output, written into": lambda output, input: references.offset_copy(output, input, 1),
    "a view of the output, backwards": lambda output, input: _backwards(output, input)[::-1],
}


def _backwards(output: Array, input: Array) -> Array:
    output[:-1], output[-1] = input[:0:-1].copy(), output[0]
    return output


@pytest.mark.parametrize("size", [5, 1 << 21])
@pytest.mark.parametrize("returned", RETURNED)
def test_unwritten_bytes_are_poison(returned: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference does not write the first element and the bytes behind the array."""
    arrays = [kernelwatch.outputs("output", "size"), kernelwatch.inputs("input", "size", values="bits")]
    name = "copy_behind_the_first"
    kernel = kernelwatch.Kernel(name, arrays, 256, over=("size",), file="none.cu", reference=RETURNED[returned])
    monkeypatch.setitem(catalog.KERNELS, kernel.name, kernel)
    reference = build_job.describe_launch(Launch(kernel.name, "float32", arguments={"size": size}), samples=1).reference
    expected_bytes = reference.content()
    repeated = inputs.repeat_block(None, inputs.block_offset(0), 4 * size)
    assert (expected_bytes[:4] == POISON).all()
    assert np.array_equal(expected_bytes[4 : 4 * size], repeated[4:])
    assert (expected_bytes[4 * size :] == POISON).all()
    assert reference.length > 4 * size


def test_persistent_grid_has_blocks_per_multiprocessor(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = copy(CASES["in place"].declared)
    kernel.grid = geometry.persistent(3)
    monkeypatch.setitem(catalog.KERNELS, kernel.name, kernel)
    launch = Launch(kernel.name, arguments={"n": 9000})
    assert build_job.describe_launch(launch, samples=1).make_job(FACTS).grid == (3 * FACTS.multiprocessors, 1, 1)


def test_inputs_have_ordinals() -> None:
    """Arrays that are read are numbered, even if they are also written."""
    arrays = [kernelwatch.inputs("a", "size"), kernelwatch.outputs("b", "size"), kernelwatch.in_and_out("c", "size")]
    kernel = kernelwatch.Kernel("k", [*arrays, kernelwatch.inputs("d", "size")], 32, over=("size",), file="k.cu")
    arguments = [argument for argument in kernel.bind_arguments("int8", size=5) if isinstance(argument, ArrayArgument)]
    assert [argument.ordinal for argument in arguments if argument.direction != "out"] == [0, 1, 2]


@pytest.mark.parametrize("length", [1, 15, 16, 17, 4095, 4096, 4097, 15003])
def test_plain_copy_is_exact(length: int) -> None:
    """The copy writes nothing behind `length` bytes, and multiples of WIDTH with the fewest sectors."""
    arguments = helper_kernels.copy_arguments(length)
    copied = launch_counts.count_launch(helper_kernels.DEVICE_COPY, helper_kernels.DTYPE, **arguments)
    assert copied.problem is None, "the copied bytes are wrong"
    if length % helper_kernels.WIDTH == 0:
        totals = copied.counters.totals()
        assert totals["load_sectors"] == totals["store_sectors"] == -(-length // 32)


def test_flush_reads_every_sector_once() -> None:
    totals = launch_counts.count_launch(helper_kernels.FLUSH_L2, helper_kernels.DTYPE, size=4096).counters.totals()
    assert totals["load_sectors"] * 32 == 4096 * helper_kernels.WIDTH
    assert totals["store_requests"] == 0
