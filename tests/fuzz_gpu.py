"""Random kernels, run in the executor and elsewhere, and compared bit for bit.

python -m tests.fuzz_gpu --programs 500 --seed 1           against the GPU of this machine
python -m tests.fuzz_gpu --programs 500 --seed 1 --host    against g++, without a GPU

Exits with 0 if all agree, with 1 and their seeds if some do not. Program k has the seed ``seed * 1000000 + k``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpu_kernels import launch
from gpu_kernels.errors import NoDeviceError
from ptxcount.errors import PtxError
from tests.ptxcount.fuzz import ways

_BATCH = 50


def compare(seeds: list[int], host: bool) -> dict[int, list[str]]:
    """The differences of the kernels of some seeds; those that agree are left out."""
    found: dict[int, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ptx = ways.compile_ptx(seeds, Path(folder))
        other = ways.Host(seeds, Path(folder)) if host else ways.Gpu(ptx)
        for seed in seeds:
            try:
                differ = ways.differences(ways.executor(ptx, seed), other(seed))
            except PtxError as error:
                differ = [f"{type(error).__name__}: {error}"]
            if differ:
                found[seed] = differ
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run the comparison and print a table; the exit code."""
    parser = argparse.ArgumentParser("python -m tests.fuzz_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--host", action="store_true", help="compare with g++ instead of a GPU")
    options = parser.parse_args(words)
    if not options.host:
        try:
            launch.context()
        except NoDeviceError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    first = options.seed * 1_000_000
    seeds = list(range(first, first + options.programs))
    failed: dict[int, list[str]] = {}
    sys.stdout.write(f"{'seeds':<24}{'programs':>10}{'differ':>10}{'seconds':>10}\n")
    for start in range(0, len(seeds), _BATCH):
        batch, began = seeds[start : start + _BATCH], time.perf_counter()
        found = compare(batch, options.host)
        failed |= found
        spent = time.perf_counter() - began
        sys.stdout.write(f"{f'{batch[0]} to {batch[-1]}':<24}{len(batch):>10}{len(found):>10}{spent:>10.1f}\n")
        sys.stdout.flush()
    for seed, differ in failed.items():
        sys.stdout.write(f"seed {seed}: {'; '.join(differ)}\n")
    sys.stdout.write(f"{len(seeds)} programs, {len(failed)} differ\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
