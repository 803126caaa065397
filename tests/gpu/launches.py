"""Launches of special instructions, for comparison of outputs and counters with a device.

``python -m tests.gpu.launches`` runs each once on the device for Nsight Compute.
"""

from __future__ import annotations

import copy
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptxcount import LaunchCounters, Surface, TensorMap, Texture
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import ArrayDescriptor
from ptxcount.source.cuda_compiler import find_nvcc
from tests.gpu.driver import Device
from tests.ptxcount import sources, test_everyday, test_functions
from tests.ptxcount.test_matrices import WMMA
from tests.ptxcount.test_textures import MODES

RNG = np.random.default_rng(17)
#: A folder for this process alone: other processes compile the same files in parallel.
FOLDER = tempfile.TemporaryDirectory()


class DeviceLaunch(NamedTuple):
    """A launch. The tolerance is relative and absolute. The options are those of `Device.run`."""

    name: str
    file: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: list[Any]
    tolerance: float = 0.0
    options: dict[str, Any] = {}
    arch: str = "sm_90"

    def copy_arguments(self) -> list[Any]:
        return [copy.deepcopy(argument) for argument in self.arguments]

    def run_on_cpu(self, arguments: list[Any]) -> LaunchCounters:
        text = sources.ptx(self.file, arch=self.arch)
        return execute_kernel(
            text,
            self.entry,
            self.grid,
            self.block,
            arguments,
            dynamic_shared=self.options.get("shared", 0),
            distinct=True,
        )

    def run_on_device(self, device: Device, arguments: list[Any]) -> None:
        device.run(compile_cubin(self.file, self.arch), self.entry, self.grid, self.block, arguments, **self.options)


@cache
def compile_cubin(file: str, arch: str) -> Path:
    cubin_file = Path(FOLDER.name, f"{file}-{arch}.cubin")
    source = sources.FOLDER / f"{file}.cu"
    subprocess.run([str(find_nvcc()), "--cubin", "-arch", arch, str(source), "-o", str(cubin_file)], check=True)
    return cubin_file


def list_arrays(arguments: list[Any]) -> list[Any]:
    """Return the arrays among the arguments, and the arrays of descriptors among them."""
    arrays = [argument.array if isinstance(argument, ArrayDescriptor) else argument for argument in arguments]
    return [array for array in arrays if isinstance(array, np.ndarray)]


def random_floats(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def _textures() -> list[DeviceLaunch]:
    launches = []
    for entry, shape in (
        ("fetch1", (19,)),
        ("fetch1", (4096,)),
        ("fetch2", (7, 19)),
        ("fetch2", (256, 256)),
        ("fetch3", (5, 7, 19)),
    ):
        for filter_mode, address, normalized in MODES:
            scale = [1 if normalized else n for n in shape]
            coordinates = [RNG.uniform(-1.5 * n, 2.5 * n, 4096).astype(np.float32) for n in scale]
            texture = Texture(
                random_floats(*shape), filter=filter_mode, address=address, normalized=normalized, layout="array"
            )
            name = f"{entry} {shape} {filter_mode} {address}{' normalized' * normalized}"
            launches.append(
                DeviceLaunch(
                    name, "textures", entry, (32, 1, 1), (128, 1, 1), [zeros(4096), texture, *coordinates[::-1]], 1e-6
                )
            )
    x, y = (axis_indices.astype(np.float32).ravel() + 0.5 for axis_indices in np.indices((64, 64))[::-1])
    for layout in ("array", "rows"):
        for filter_mode in ("point", "linear"):
            for way, first, second in (("rows", x, y), ("columns", y, x)):
                texture = Texture(random_floats(64, 64), filter=filter_mode, layout=layout)
                name, fetch_arguments = (
                    f"64 x 64 by {way}, {layout}, {filter_mode}",
                    [zeros(4096), texture, first, second],
                )
                launches.append(
                    DeviceLaunch(name, "textures", "fetch2", (16, 1, 1), (256, 1, 1), fetch_arguments, 1e-6)
                )
    layer = RNG.integers(0, 3, 4096).astype(np.int32)
    for entry, shape in (("layer1", (3, 19)), ("layer2", (3, 7, 19))):
        coordinates = [RNG.uniform(0, n, 4096).astype(np.float32) for n in shape[1:]]
        arguments = [
            zeros(4096),
            Texture(random_floats(*shape), filter="linear", layout="array"),
            *coordinates[::-1],
            layer,
        ]
        launches.append(
            DeviceLaunch(
                f"{entry} linear", "textures", entry, (32, 1, 1), (128, 1, 1), arguments, 1e-6, {"layered": True}
            )
        )
    index = np.arange(-32, 4064, dtype=np.int32)
    for name, array, fractions in (("floats", random_floats(4000), False),
                                   ("halves", random_floats(4000).astype("f2"), False),
                                   ("bytes", RNG.integers(0, 256, 4000).astype("u1"), True)):  # fmt: skip
        arguments = [zeros(4096), Texture(array, fractions=fractions), index]
        launches.append(DeviceLaunch(f"element of {name}", "textures", "element", (32, 1, 1), (128, 1, 1), arguments))
    launches.append(DeviceLaunch("element, every 8th", "textures", "element", (4, 1, 1), (128, 1, 1),
                     [zeros(512), Texture(random_floats(4096)), np.arange(0, 4096, 8, dtype=np.int32)]))  # fmt: skip
    coordinates = [RNG.uniform(0, 64, 4096).astype(np.float32) for _ in range(2)]
    numbers = RNG.integers(0, 256, (64, 64, 4)).astype("u1")
    for name, entry, out, texture, options in (
        ("float4", "colours", zeros(4096, 4), Texture(random_floats(64, 64, 4), channels=4), {}),
        (
            "float4 linear",
            "colours",
            zeros(4096, 4),
            Texture(random_floats(64, 64, 4), channels=4, filter="linear"),
            {},
        ),
        ("uchar4", "bytes", zeros(4096, 4, dtype="u1"), Texture(numbers, channels=4), {}),
        ("gather", "gather", zeros(4096, 4), Texture(random_floats(64, 64)), {"gather": True}),
    ):
        launches.append(
            DeviceLaunch(name, "textures", entry, (32, 1, 1), (128, 1, 1), [out, texture, *coordinates], 1e-6, options)
        )
    x = np.arange(-8, 24, dtype=np.int32)
    launches += [
        DeviceLaunch(
            "turned surface",
            "textures",
            "turn",
            (2, 8, 1),
            (32, 8, 1),
            [Surface(zeros(64, 64)), Surface(random_floats(64, 64))],
        ),
        DeviceLaunch(
            "beyond a surface", "textures", "beyond", (1, 1, 1), (32, 1, 1), [zeros(32), Surface(random_floats(8)), x]
        ),
    ]
    return launches


def _tensor_cores() -> list[DeviceLaunch]:
    launches = []
    for name, factor, total, (m, n, k), orders in WMMA:
        extents = [((m, k), factor), ((k, n), factor), ((m, n), total)]
        matrices = [RNG.integers(-8, 8, extent).astype(kind) for extent, kind in extents]
        memory = [
            (matrix if order == "C" else matrix.T).flatten() for matrix, order in zip(matrices, orders, strict=True)
        ]
        leading = [np.int32(matrix.shape[order == "C"]) for matrix, order in zip(matrices, orders, strict=True)]
        wmma_arguments = [zeros(m * n, dtype=total), *memory, *leading]
        launches.append(DeviceLaunch(f"wmma {name}", "tensor_cores", name, (1, 1, 1), (32, 1, 1), wmma_arguments))
    launches.append(DeviceLaunch("ldmatrix rows", "tensor_cores", "rows", (1, 1, 1), (32, 1, 1),
                     [zeros(128, dtype="u4"), np.arange(256, dtype="u2").view("u4")]))  # fmt: skip
    return launches


def _clusters() -> list[DeviceLaunch]:
    matrix, place, unit_block = random_floats(60, 64), (np.int32(40), np.int32(50)), (1, 1, 1)
    boxes = [
        [TensorMap(array, (32, 32), swizzle) for array in (matrix, zeros(60, 64), matrix.copy())]
        for swizzle in (0, 128)
    ]
    small = [RNG.integers(-8, 9, shape).astype(np.float16) for shape in ((64, 16), (32, 16), (16, 64), (16, 32))]
    numbers = RNG.integers(0, 99, 3 * 7 * 32).astype("i4")
    alike: dict[str, Any] = {"arch": "sm_90a"}
    return [
        DeviceLaunch("ring", "clusters", "ring", (3, 1, 1), (64, 1, 1), [zeros(96, dtype="i4"), numbers, np.int32(7)]),
        DeviceLaunch("bulk rows", "clusters", "rows", (50, 1, 1), (128, 1, 1),
            [zeros(50, 1024), random_floats(50, 1024)]),
        *(DeviceLaunch(f"boxes {swizzle}", "clusters", "boxes", unit_block, (128, 1, 1), [*maps, zeros(32, 32), *place])
          for swizzle, maps in zip((0, 128), boxes, strict=True)),
        DeviceLaunch("neighbours", "clusters", "neighbours", (8, 1, 1), (64, 1, 1),
            [zeros(8, 64, dtype="i4"), zeros(2, dtype="i4")]),
        DeviceLaunch("sent", "clusters", "sent", (4, 4, 1), (32, 1, 1), [zeros(512, dtype="i4")]),
        *(DeviceLaunch(f"wgmma {mode}", "warpgroups", "warpgroup", unit_block, (128, 1, 1),
              [zeros(64, 32), *small[:2], np.int32(mode)], **alike) for mode in (0, 1)),
        DeviceLaunch("wgmma turned", "warpgroups", "warpgroup_turned", unit_block, (128, 1, 1),
            [zeros(64, 32), *small[2:]], **alike),
        DeviceLaunch("cooperative grid", "grids", "reversed", (20, 1, 1), (96, 1, 1),
            [zeros(1920, dtype="i4"), zeros(1920, dtype="i4")], options={"cooperative": True}),
    ]  # fmt: skip


def _everyday() -> list[DeviceLaunch]:
    launches = []
    for name, (grid, block, *shared), arguments, _, tolerance in test_everyday.CASES:
        extents = test_everyday._three(grid), test_everyday._three(block)
        launches.append(
            DeviceLaunch(name, "everyday", name, *extents, arguments, tolerance, {"shared": shared[0] if shared else 0})
        )
    return launches


def _functions() -> list[DeviceLaunch]:
    halves = [zeros(48, dtype="f2"), zeros(96, dtype="f2"), np.ones(96, "u2")]
    return [
        DeviceLaunch(f"function {name}", "functions", name, (1, 1, 1), (96, 1, 1), arguments)
        for name, arguments in (*(case[:2] for case in test_functions.CASES), ("halves", halves))
    ]


def _divergence() -> list[DeviceLaunch]:
    rng, count = np.random.default_rng(3), 1000
    numbers, wanted = rng.integers(0, 100, 9000).astype("i4"), rng.integers(0, 4000, count).astype("i4")
    ordered = np.sort(rng.integers(0, 4000, count)).astype("i4")
    first = [numbers, numbers[::-1].copy()]
    hits, names = [zeros(8, dtype="i4"), numbers], (
        "sum_labels", "stop_at_zero", "check_all", "either", "either_or_else", "both_or_else", "find_pair_unrolled",
        "find_pair", "fall_through", "skip_even", "follow_unrolled", "follow")  # fmt: skip
    cases = {
        "count_first_unrolled": hits, "count_first": hits, "find_first_unrolled": first, "find_first": first,
        "search_sorted": [ordered, wanted], **{name: [numbers] for name in names},
    }  # fmt: skip
    return [
        DeviceLaunch(name, "divergence", name, (8, 1, 1), (128, 1, 1),
            [zeros(9000, dtype="i4"), *inputs, np.int32(count)])
        for name, inputs in cases.items()
    ]  # fmt: skip


def _shared_loads() -> list[DeviceLaunch]:
    numbers = np.random.default_rng(5).integers(1, 4000, 1024).astype("i4")
    return [
        DeviceLaunch(
            name, "shared_loads", name, (8, 1, 1), (128, 1, 1), [zeros(2048, dtype="i4"), numbers, np.int32(1024)]
        )
        for name in ("search_diagonal", "sum_remainder", "normalize")
    ]


def _yielding() -> list[DeviceLaunch]:
    rng, count = np.random.default_rng(4), 1000
    numbers, columns = rng.integers(0, 100, 12288).astype("i4"), rng.integers(1, 100, (12, 1024)).astype("i4")
    columns[rng.integers(0, 8, 1024), np.arange(1024)] = columns[8:] = 0
    source = (sources.FOLDER / "yielding.cu").read_text()
    names = re.findall(r"^(?:KERNEL |INSERT\(|SEARCH\()(\w+)", source, re.MULTILINE)
    return [
        DeviceLaunch(name, "yielding", name, (8, 1, 1), (128, 1, 1),
            [zeros(9216, dtype="i4"), columns.ravel(), numbers, np.int32(count)])
        for name in names
    ]  # fmt: skip


#: Launches that may end a context come last.
LAUNCHES = [
    *_everyday(),
    *_tensor_cores(),
    *_textures(),
    *_clusters(),
    *_divergence(),
    *_shared_loads(),
    *_yielding(),
    *_functions(),
]


def main() -> None:
    """Run each launch once on the device."""
    from cuda.bindings import driver

    device = Device(driver)
    for device_launch in LAUNCHES:
        device_launch.run_on_device(device, device_launch.copy_arguments())


if __name__ == "__main__":
    main()
