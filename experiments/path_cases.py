"""Launches of `memory_paths.cu`. Each has a result that was guessed before any launch ran (2026-11-29)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

MIB = 1 << 20
#: Blocks of a launch whose blocks wait for one another: one on each SM.
RESIDENT = 132


class Buffer(NamedTuple):
    """Memory of a launch. `kind` is device, managed (zeroed on the GPU before), untouched (managed), or texture."""

    nbytes: int
    kind: str = "device"


@dataclass(frozen=True)
class Path:
    """A launch of a kernel in `memory_paths.cu`.

    `guess` is the guessed result. `flags` are nvcc's. `window` is the number of bytes of the first buffer that persist
    in L2. `wavefronts` is the guess for an `ldmatrix` or `stmatrix`.
    """

    group: str
    name: str
    guess: str
    kernel: str
    blocks: int
    threads: int
    arguments: tuple[Any, ...]
    flags: str = ""
    window: int = 0
    wavefronts: int = 0


#: Group -> metrics of Nsight Compute in addition to the duration.
METRICS = {
    "matrix rows": [
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    ],
    "strided loads": [
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
        "lts__t_sectors_op_read.sum",
    ],
    "parts of sectors": ["dram__sectors_read.sum", "dram__sectors_write.sum", "lts__t_sectors_op_write.sum"],
    "discard": ["dram__sectors_read.sum", "dram__sectors_write.sum"],
    "kept in L2": ["dram__sectors_read.sum", "dram__sectors_write.sum"],
    "random reads": [
        "lts__t_sectors_op_read.sum", "dram__sectors_read.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    ],
    "managed memory": ["dram__sectors_read.sum", "dram__sectors_write.sum"],
}  # fmt: skip


def _iter_matrices() -> Iterator[Path]:
    """Yield `ldmatrix` and `stmatrix` launches.

    An instruction has a phase for each eight rows. The guess: a phase takes one wavefront for each different row in the
    same four banks.
    """
    lane = np.arange(32)
    patterns = {f"{step} x 16 bytes apart": step * lane for step in (1, 2, 3, 4, 5, 8, 9, 10, 16, 17)}
    patterns |= {
        "one row": 0 * lane,
        "pairs": lane // 2,
        "modulo 8": lane % 8,
        "modulo 8, 128 bytes apart": lane % 8 * 8,
    }
    patterns["random"] = np.random.default_rng(57).integers(0, 512, 32)
    for name, place in patterns.items():
        for kind in ("load", "store"):
            for count in ("1", "2", "4", "4_trans"):
                phases = place[: 8 * int(count[0])].reshape(-1, 8)
                wavefronts = sum(max(np.bincount(np.unique(phase) % 8)) for phase in phases)
                guess = f"ld {1 + wavefronts * (kind == 'load')}, st {256 + wavefronts * (kind == 'store')}"
                arguments = (np.zeros(32, np.uint32), place.astype(np.int32))
                text, kernel = f"{kind} x{count}, {name}", f"{kind}_x{count}"
                yield Path("matrix rows", text, guess, kernel, 1, 32, arguments, wavefronts=int(wavefronts))


def _iter_strided(small: bool) -> Iterator[Path]:
    blocks = 2 if small else 4096
    for cache, stride in ((cache, stride) for cache in ("ca", "cg") for stride in (1, 2, 4, 8, 12, 16, 24, 32, 64)):
        hits = "no hit" if cache == "cg" else "7/8 hit" if stride <= 16 else "half hit: 2,048 threads take all of L1"
        arguments = (Buffer(blocks * 1024 * stride + 64), Buffer(4), np.int32(stride))
        name = f"-dlcm={cache}, {stride} floats apart"
        yield Path("strided loads", name, hits, "strided", blocks, 256, arguments, f"-Xptxas -dlcm={cache}")


def _iter_parts(small: bool) -> Iterator[Path]:
    for sectors in (1 << 10,) if small else (1 << 19, 1 << 22):
        rows = [(f"part_{size}", 0, f"reads {sectors:,}") for size in (1, 4, 8, 16, 28)]
        rows += [("part_32", 0, "reads 0"), ("halves", 0, "reads 0"), ("halves", 1024, "reads 0")]
        rows.append(("halves", sectors // 2, "reads 0" if sectors < 1 << 20 else f"reads {2 * sectors:,}"))
        for kernel, distance, guess in rows:
            blocks = sectors // 256 * (2 if kernel == "part_32" else 1)
            arguments = (Buffer(32 * sectors), np.int32(distance))
            yield Path(
                "parts of sectors", f"{kernel} of {sectors:,}, {distance} apart", guess, kernel, blocks, 256, arguments
            )


def _iter_cached(small: bool) -> Iterator[Path]:
    cold, blocks = (1 << 14, 2) if small else (256 * MIB, RESIDENT)
    names = {
        0: ("plain", "all read again"), 1: ("createpolicy evict_last", "none read again"),
        2: ("evict_last, then applypriority evict_normal", "all read again"),
        3: ("cold by evict_first", "none read again"), 4: ("prefetch evict_last", "none read again"),
        5: ("hot by evict_last, cold by evict_first", "none read again"), 6: ("persisting window", "none read again"),
    }  # fmt: skip
    for hot in (1 << 12,) if small else (8 * MIB, 16 * MIB, 24 * MIB, 32 * MIB):
        shared = (Buffer(hot), Buffer(cold), np.uint64(hot // 16), np.uint64(cold // 16))
        ends = (Buffer(4), Buffer(16))
        for mode, (name, guess) in names.items():
            arguments = (*shared, np.int32(mode % 6), *ends)
            window = hot if mode == 6 else 0
            yield Path(
                "kept in L2", f"{hot / MIB:g} MiB, {name}", guess, "keep", blocks, 1024, arguments, window=window
            )
        for mode, guess in enumerate((f"writes {hot // 32:,}", "writes 0")):
            name = f"{hot / MIB:g} MiB, {'discarded' if mode else 'plain'}"
            yield Path("discard", name, guess, "forget", blocks, 1024, (*shared, np.int32(mode), *ends))


def _iter_randoms(small: bool) -> Iterator[Path]:
    guesses = {
        "plain": "",
        "nc": "as plain",
        "cg": "slower where L1 holds it",
        "texture": "half as fast in L1, else as plain",
    }
    for size in (1 << 10,) if small else (1 << 14, 1 << 17, MIB, 16 * MIB, 256 * MIB):
        for kind, guess in guesses.items():
            table = Buffer(size, "texture" if kind == "texture" else "device")
            arguments = (table, np.uint64(size // 4 - 1), Buffer(4))
            name = f"{kind}, table of {size >> 10:,} KiB"
            yield Path("random reads", name, guess, f"random_{kind}", 2 if small else 4096, 256, arguments)


def _iter_pages(small: bool) -> Iterator[Path]:
    group, size, table = "managed memory", 1 << 12 if small else 1 << 30, 1 << 12 if small else 1 << 33
    blocks, threads = (2, 64) if small else (1056, 1024)
    for kind, guess in (("device", ""), ("managed", "as device"), ("untouched", "50 times as long: faults")):
        copied = (Buffer(size, kind), Buffer(size, kind), np.uint64(size // 16))
        yield Path(group, f"copy, {kind}", guess, "copy", blocks, threads, copied)
        if kind != "untouched":
            read = (Buffer(table, kind), np.uint64(table // 4 - 1), Buffer(4))
            yield Path(group, f"random of 8 GiB, {kind}", guess, "random_plain", 4 * blocks, 256, read)


def list_paths(*, small: bool = False) -> list[Path]:
    """Return all launches; with ``small``, launches of the same kernels that are small enough for ptxcount."""
    groups = (_iter_strided, _iter_parts, _iter_cached, _iter_randoms, _iter_pages)
    return [*_iter_matrices(), *(path for group in groups for path in group(small))]


#: Kind of memory of a chain -> the strides in bytes, and the binary logarithms of the footprints in bytes.
_CHAINS = {
    "device": ([1 << shift for shift in (16, 18, 20, 21, 22)], range(24, 37)),
    "managed": ([1 << 21], range(28, 35)),
}
#: Kind of memory, stride in bytes, and footprint in bytes of each chain.
CHAINS = [
    (kind, stride, 1 << shift)
    for kind, (strides, shifts) in _CHAINS.items()
    for stride in strides
    for shift in shifts
    if 16 <= (1 << shift) // stride <= 1 << 16
]


def guess_latency(footprint: int) -> str:
    """Guess the latency in clocks of a load that hits L2, from the reach of two levels of address translation."""
    return "270" if footprint <= 1 << 25 else "350" if footprint <= 1 << 33 else "700"
