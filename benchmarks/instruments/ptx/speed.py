"""How fast the executor is: threads a second for each kernel of the catalog, on one core, counting and checks included.

What bounds it: for each load or store, one index a thread (8 bytes) is made, and one element is gathered or scattered
by it, at 2 to 4 ns each, which the cache misses of strided elements dominate; everything else is done once a block
or once a thread of one block. Fixed costs are about 10 microseconds for each PTX instruction and chunk of blocks.

python -m benchmarks.instruments.ptx.speed [--dtype float32] [--side 4096] [--repeat 3]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.instruments import counted
from benchmarks.instruments.ptx.execute import run
from gpu_kernels import catalog, flags


def measure(kernel: str, dtype: str, side: int) -> tuple[int, float]:
    """Threads of a launch over side x side elements, and the seconds it takes; the PTX is compiled before."""
    spec = catalog.get(kernel)
    sizes = {"rows": side, "columns": side, "size": side * side, "offset": 1, "stride": 2}
    arguments = {name: sizes[name] for name in spec.parameters}
    geometry = spec.geometry(**arguments)
    output, source = (counted.pattern(shape, dtype) for shape in spec.arrays(**arguments))
    text = counted.ptx(kernel, dtype, flags.DEFAULT)
    scalars = counted.scalars(spec, arguments)
    start = time.perf_counter()
    counters = run(text, kernel, geometry.grid, geometry.block, [output, source, *scalars])
    return counters.threads, time.perf_counter() - start


def main(words: Sequence[str] | None = None) -> int:
    """Print a table: the fastest of some launches of each kernel, and the most memory that the process took."""
    import resource  # noqa: PLC0415 -- asv imports every module, and this one is for Unix only

    parser = argparse.ArgumentParser("python -m benchmarks.instruments.ptx.speed", description=__doc__)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--side", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(words)
    sys.stdout.write(f"{'kernel':<42}{'million threads/s':>18}{'ns/thread':>12}{'peak MiB':>10}\n")
    for kernel in catalog.KERNELS:
        threads, seconds = min(
            (measure(kernel, options.dtype, options.side) for _ in range(options.repeat)), key=lambda found: found[1]
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        rate = threads / seconds
        sys.stdout.write(f"{kernel:<42}{rate / 1e6:>18.1f}{1e9 / rate:>12.1f}{peak:>10.0f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
