"""Launches of one warp of ``tests/kernels/narrow.cu``, and their counters by Nsight Compute's names."""

import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ptxcount.lanes.warps import Array
from tests.ptxcount.chip_counters import ChipLaunch, CounterPair

MEASURED = Path(__file__).parents[1] / "data" / "narrow-h200.csv"
LANES = np.arange(32)
_RANDOM = np.random.default_rng(5)
#: Index of the half, of 64, that each lane changes.
PLACES = {
    "neighbours": LANES, "one half": 0 * LANES, "one word": LANES % 2, "lane / 4": LANES // 4,
    "stride 2": 2 * LANES % 64, "stride 8": 8 * LANES % 64, "random": _RANDOM.integers(0, 64, 32),
    "reversed": 63 - LANES,
}  # fmt: skip
#: Index of the element, of 256, that each lane changes; -1 if it changes none. A place is an element.
LOOP_PLACES = {
    "neighbours": LANES, "one address": 0 * LANES, "two a place": LANES // 2, "four places": LANES % 4,
    "stride 2": 2 * LANES, "stride 8": 8 * LANES, "stride 8, two a place": LANES // 2 * 8, "random": PLACES["random"],
    "random of 256": np.random.default_rng(6).integers(0, 256, 32), "16 lanes": np.where(LANES < 16, LANES, -1),
    "one lane": np.where(LANES == 9, LANES, -1), "odd lanes, one address": np.where(LANES % 2, 0, -1),
}  # fmt: skip
#: Kernels of loops and of wide swaps in shared memory, and the dtype of their elements.
LOOP_TYPES = {
    "loop_f32": "f4", "loop_f64": "f8", "loop_u64": "u8", "loop_xor": "u8", "loop_half2": "f2", "swap_u64": "u8",
    "cas_u64": "u8", "swap_b128": "c16", "cas_b128": "c16",
}  # fmt: skip
#: Operand of each lane of a loop or a wide swap; 0 changes nothing.
LOOP_OPERANDS = {
    "all change": 0 * LANES + 1, "none changes": 0 * LANES, "odd lanes change": LANES % 2,
    "even lanes change": 1 - LANES % 2, "first half changes": LANES < 16,
}  # fmt: skip
#: Index of the element of a table that each lane reads.
INDICES = {
    "uniform": 0 * LANES + 3, "stride 1": LANES, "lane / 2": LANES // 2, "lane % 4": LANES % 4,
    "lane / 16": LANES // 16, "reversed": 31 - LANES, "random": _RANDOM.integers(0, 64, 32), "stride 2": 2 * LANES,
}  # fmt: skip
#: Initial value of all halves, and the addend of each lane.
SUMS = {
    "all change": (0, 0 * LANES + 1), "none changes": (1, 0 * LANES), "odd lanes change": (1, LANES % 2),
    "even lanes change": (1, 1 - LANES % 2),
}  # fmt: skip
#: Number that each lane compares with its half; halves are 0 at first. Lane i stores i + 1: in a chain of lanes on one
#: half, each compares with the number of the lane before.
SWAPS = {
    "all compare equal": 0 * LANES, "none compares equal": 0 * LANES + 7,
    "odd lanes compare equal": np.where(LANES % 2, 0, 7), "chain": LANES,
}  # fmt: skip
#: Initial value of all halves, a little less than the number to which adding 1 changes nothing.
SATURATED = {"f16": 2**11 - 8, "bf16": 2**8 - 4}
#: Kernel -> variable in constant memory that it reads.
VARIABLES = {"byte": "words", "word": "words", "pair": "pairs", "quad": "quads"}
#: Kernels that read a parameter, ``Table`` of narrow.cu.
MEMBERS = ("member", "member_pair", "member_quad", "plain")
_TABLE_BYTES = 256 * 4 + 64 * 8 + 64 * 16  # words, pairs and quads
#: Counter -> metrics of Nsight Compute that add up to it.
METRICS = {
    "atomic_requests": [f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("atom", "red")],
    "atomic_sectors": [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("atom", "red")],
    "load_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    "load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "shared_atomic_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"],
    "shared_load_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
    "shared_load_requests": ["smsp__inst_executed_op_shared_ld.sum"],
    "constant_addresses": ["idc__requests.sum"],
}


_GLOBAL_COUNTERS = ["atomic_requests", "atomic_sectors", "load_requests", "load_sectors"]
_SHARED_COUNTERS = ["shared_atomic_wavefronts", "shared_load_wavefronts"]


def encode(kind: str, values: Any) -> Any:
    """Return numbers as halves: f16, or the bits of bf16, which are the upper half of a float's."""
    return np.asarray(values, "f2") if kind == "f16" else (np.asarray(values, "f4").view("u4") >> 16).astype("u2")


def iter_atomics() -> Iterator[ChipLaunch]:
    for kernel in ("red_f16", "atom_f16", "red_bf16", "cas_b16", "sh_f16", "sh_bf16", "sh_cas"):
        counters = _SHARED_COUNTERS if kernel.startswith("sh_") else _GLOBAL_COUNTERS
        for variant, place in product(SWAPS if "cas" in kernel else [*SUMS, "saturates"], PLACES):
            indices = PLACES[place].astype("i4")
            arguments = _make_swap(variant, indices) if "cas" in kernel else _make_sum(kernel, variant, indices)
            yield ChipLaunch("narrow", f"{kernel}, {variant}, {place}", kernel, arguments, counters)


def _make_swap(variant: str, indices: Array) -> list[Array]:
    """Return the arguments of a swap: halves, the index, compared number and new number of each lane, and results."""
    return [np.zeros(64, "u2"), indices, SWAPS[variant].astype("u2"), (LANES + 1).astype("u2"), np.zeros(32, "u2")]


def _make_sum(kernel: str, variant: str, indices: Array) -> list[Array]:
    """Return the arguments of a sum: halves, the index and addend of each lane, and for ``atom`` the results."""
    kind = kernel.rpartition("_")[2]
    initial, addends = (SATURATED[kind], 0 * LANES + 1) if variant == "saturates" else SUMS[variant]
    results = [np.zeros(32, "f2")] if kernel == "atom_f16" else []
    return [encode(kind, np.full(64, initial)), indices, encode(kind, addends), *results]


def iter_loops() -> Iterator[ChipLaunch]:
    """Yield launches of the loops and the wide swaps in shared memory.

    A 64-bit loop takes fewer rounds if a lane without a change precedes a lane of another group on its word.
    ptxcount does not model that, so no launch has such operands.
    """
    for kernel, dtype in LOOP_TYPES.items():
        parts = 2 if dtype == "f2" else 1  # elements of half2
        is_wide_loop = kernel.startswith("loop") and dtype.endswith("8")
        variants = ("all change", "first half changes") if is_wide_loop else LOOP_OPERANDS
        for variant, place in product(variants, LOOP_PLACES):
            operands = np.repeat(LOOP_OPERANDS[variant], parts).astype(dtype)
            arguments = [np.zeros(256 * parts, dtype), LOOP_PLACES[place].astype("i4"), operands]
            counters = [*_SHARED_COUNTERS, "shared_load_requests"]
            yield ChipLaunch("narrow", f"{kernel}, {variant}, {place}", kernel, arguments, counters)


def iter_constants() -> Iterator[ChipLaunch]:
    for kernel in (*VARIABLES, *MEMBERS):
        table = [np.zeros(1, f"V{_TABLE_BYTES}")[0]] if kernel in MEMBERS else []
        variables = {VARIABLES[kernel]: np.arange(2048, dtype="f4")} if kernel in VARIABLES else {}
        for name, elements in INDICES.items():
            arguments = [np.zeros(128, "u1" if kernel == "byte" else "f4"), elements.astype("i4"), *table]
            counters = ["constant_addresses"]
            yield ChipLaunch("narrow", f"{kernel}, {name}", kernel, arguments, counters, variables=variables)


LAUNCHES = [*iter_atomics(), *iter_constants(), *iter_loops()]


def compare_counts(measured: dict[str, dict[str, float]]) -> list[CounterPair]:
    """Pair each counter with that of the GPU.

    Constant requests on the GPU include loads of parameters, so both counts are relative to a uniform index.
    """
    launches = [launch for launch in LAUNCHES if launch.name in measured]
    counts = {launch.name: launch.count_totals() for launch in launches}
    pairs = []
    for launch in launches:
        uniform = f"{launch.kernel}, uniform"  # a launch only of kernels that read constants
        for name in launch.counters:
            ours, chip = (side[launch.name][name] - side.get(uniform, {}).get(name, 0) for side in (counts, measured))
            pairs.append(CounterPair(launch.kernel, launch.name, name, ours, chip))
    return pairs


def read_measured() -> dict[str, dict[str, float]]:
    """Return the counters of an H200: launch -> counter -> value."""
    readings: dict[str, dict[str, float]] = {}
    with MEASURED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            readings.setdefault(row["launch"], {})[row["counter"]] = float(row["value"])
    return readings
