"""Compares the suite's transposes with those of libraries, as shares of the speed of a plain copy of the same bytes.

python -m experiments.transposes                                         # measures, and keeps the results
python -m experiments.transposes --render docs/evidence/transposes.md    # the page of what is kept
"""

from __future__ import annotations

import argparse
import math
import pkgutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from experiments import facts, libraries, pages
from experiments.libraries import LIBRARIES, Enqueue
from gpu_kernels import build, catalog, dtypes, flags
from kernelwatch.instrument import buffers, machine, tools
from kernelwatch.store import jsonl

#: rows x columns.
SHAPES = ((12800, 12800), (8192, 8192), (4096, 4096), (5003, 2999))

#: Those of the suite that are measured.
KERNELS = ("transpose_vectorized", "transpose_read_write_coalesced")

COPY = tools.DEVICE_COPY.name

#: Milliseconds that a replay takes at least, and how many there are.
REPLAY, REPLAYS = 2.0, 9

_HOW = f"""\
Launches follow one another in a CUDA graph, between two events. Their buffers rotate through more than the L2 cache. A
time is the median of {REPLAYS} replays, all in one process. Every output was compared with its input, bit by bit.
A share is the time of the suite's copy of the same bytes, divided by that of the transpose. The copy moves 16 bytes a
thread, and was measured right before and right after the transpose."""


@dataclass(frozen=True)
class Transposed:
    """One matrix by one method: seconds a launch, and those of the copy of as many bytes."""

    rows: int
    columns: int
    dtype: str
    method: str
    seconds: float
    copy_seconds: float

    @property
    def share(self) -> float:
        """Of the copy's speed."""
        return self.copy_seconds / self.seconds


class Matrices:
    """Matrices to transpose on the GPU, as many as go through more than the L2, as CuPy's arrays.

    Parameters
    ----------
    cupy : module
        CuPy.
    rows, columns : int
        Their shape.
    dtype : str
        Their dtype.
    """

    def __init__(self, cupy: Any, rows: int, columns: int, dtype: str) -> None:
        self._cupy = cupy
        length = rows * columns * dtypes.get(dtype).itemsize
        l2_bytes = cupy.cuda.Device().attributes["L2CacheSize"]
        self.bytes = length
        random = cupy.random.default_rng(1)
        self.pairs = []
        for _ in range(buffers.sets_for(2 * length, l2_bytes)):
            bits = random.integers(0, 256, length, dtype=cupy.uint8)
            matrix = bits.view(dtype).reshape(rows, columns)
            cupy.nan_to_num(matrix, copy=False)  # what multiplies by one, as cuBLAS does, changes the bits of a NaN
            self.pairs.append((matrix, cupy.empty((columns, rows), dtype)))

    def is_right(self) -> bool:
        """Whether the first output holds the first input's transpose, bit by bit."""
        source, output = self.pairs[0]
        word = min(source.itemsize, 8)
        bits = [each.view(f"u{word}").reshape(*each.shape, -1) for each in (source, output)]
        return bool((bits[0].transpose(1, 0, 2) == bits[1]).all())

    def replays(self, enqueue: Enqueue, stream: Any) -> Iterator[float]:
        """Yield the seconds a launch of one replay after another, without end."""
        expected = 2 * self.bytes / 4e12
        count = max(2, math.ceil(REPLAY * 1e-3 / expected / len(self.pairs)) * len(self.pairs))
        with stream:
            enqueue(stream, *self.pairs[0])
            stream.synchronize()
            stream.begin_capture()
            for index in range(count):
                enqueue(stream, *self.pairs[index % len(self.pairs)])
            graph = stream.end_capture()
        event = self._cupy.cuda.Event
        while True:
            first, last = event(), event()
            first.record(stream)
            graph.launch(stream)
            last.record(stream)
            last.synchronize()
            yield self._cupy.cuda.get_elapsed_time(first, last) * 1e-3 / count


def of_kernel(cupy: Any, name: str, dtype: str, rows: int, columns: int) -> Enqueue:
    """Return what enqueues a kernel of the suite, or its copy. Errors as `build.cubin`."""
    arch = libraries.arch(cupy)
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    if name == COPY:
        length = rows * columns * dtypes.get(dtype).itemsize
        arguments = {"size": tools.elements(length), "length": length}
        data, shape = tools.cubin(COPY, arch), tools.DEVICE_COPY.geometry(None, multiprocessors, **arguments)
    else:
        kernel, arguments = catalog.get(name), {"rows": rows, "columns": columns}
        data = build.cubin(kernel, dtype, flags.DEFAULT, arch=arch).data
        shape = kernel.geometry(dtype, multiprocessors, **arguments)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(data)
        file.flush()
        function = cupy.RawModule(path=file.name).get_function(name)
    values = tuple(map(cupy.int64, arguments.values()))

    def enqueue(stream: Any, source: Any, output: Any) -> None:
        function(shape.grid, shape.block, (output, source, *values), shared_mem=shape.dynamic_shared, stream=stream)

    return enqueue


def measure(shapes: Sequence[tuple[int, int]]) -> Iterator[Transposed]:
    """Yield what each method takes of each matrix.

    Raises
    ------
    ImportError
        There is no CuPy.
    ArithmeticError
        A method gave something else than the transpose.
    """
    import cupy  # noqa: PLC0415 -- only where it is measured

    stream = cupy.cuda.Stream(non_blocking=True)
    for rows, columns in shapes:
        for dtype in dtypes.ONE_OF_EACH_SIZE:
            matrices = Matrices(cupy, rows, columns, dtype)
            copies = matrices.replays(of_kernel(cupy, COPY, dtype, rows, columns), stream)
            methods: dict[str, Callable[[int, int], Enqueue]] = {
                name: partial(of_kernel, cupy, name, dtype) for name in KERNELS
            }
            for name, library in LIBRARIES.items():
                if dtype in library.dtypes and all(map(_is_there, library.needs)):
                    methods[name] = library.make
            for name, make in methods.items():
                try:
                    seconds, copy_seconds = _beside_copies(matrices, make(rows, columns), copies, stream)
                except (ArithmeticError, OSError, RuntimeError) as error:
                    if name in KERNELS:
                        raise
                    print(f"{rows}x{columns} {dtype} {name} left out: {error}", file=sys.stderr, flush=True)
                    continue
                found = Transposed(rows, columns, dtype, name, seconds, copy_seconds)
                print(f"{rows}x{columns} {dtype} {name}: {found.share:.3f}", file=sys.stderr, flush=True)
                yield found
            del matrices, copies, methods
            cupy.get_default_memory_pool().free_all_blocks()


def _beside_copies(matrices: Matrices, enqueue: Enqueue, copies: Iterator[float], stream: Any) -> tuple[float, float]:
    """Return median seconds of a method and of the copies around it. Raises ArithmeticError if it is wrong."""
    replays = matrices.replays(enqueue, stream)
    next(replays)  # the first brings the graph onto the device
    before = next(copies)  # and no output holds a transpose
    own = [next(replays) for _ in range(REPLAYS)]
    if not matrices.is_right():
        raise ArithmeticError("its output is not the transpose")
    return statistics.median(own), statistics.median([before, next(copies), next(copies)])


def _is_there(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        print(f"left out what needs {name}, which is not installed", file=sys.stderr)
        return False
    return True


def table(found: Sequence[Transposed], rows: int, columns: int) -> str:
    """Return the shares of one shape: a row a method, a column a dtype."""
    own = {(each.method, each.dtype): each for each in found if (each.rows, each.columns) == (rows, columns)}
    methods = dict.fromkeys(method for method, _ in own)
    cells = [
        [_title(method), *(_cell(own.get((method, dtype))) for dtype in dtypes.ONE_OF_EACH_SIZE)] for method in methods
    ]
    align = ["left", *["right"] * len(dtypes.ONE_OF_EACH_SIZE)]
    return pages.table(cells, [f"{rows} x {columns}", *dtypes.ONE_OF_EACH_SIZE], align)


def _cell(found: Transposed | None) -> str:
    return "" if found is None else f"{found.share:.3f}"


def _title(method: str) -> str:
    return LIBRARIES[method].title if method in LIBRARIES else f"`{method}`"


def page(known: Mapping[str, Any], found: Sequence[Transposed]) -> str:
    """Return a page of Markdown."""
    made = pages.made("transposes")
    shapes = dict.fromkeys((each.rows, each.columns) for each in found)
    methods = dict.fromkeys(each.method for each in found)
    texts = [f"- {library.title}: {library.text}" for name, library in LIBRARIES.items() if name in methods]
    tables = [table(found, *shape) for shape in shapes]
    lines = ["# Transposes, as shares of a copy", f"{made}: {facts.sentence(known)}, `{flags.DEFAULT}`.", _HOW]
    return "\n\n".join([*lines, "\n".join(texts), *tables]) + "\n"


def read(path: Path) -> tuple[dict[str, Any], list[Transposed]]:
    """Return the facts and what was found. Raises as `facts.read`."""
    known, entries = facts.read(path)
    return known, [Transposed(**entry) for entry in entries]


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print, or render what was measured; 2 if there is no GPU or no CuPy."""
    parser = argparse.ArgumentParser("python -m experiments.transposes", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=pages.EVIDENCE / "transposes.jsonl", help="what is found")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; tables of what is kept")
    options = parser.parse_args(words)
    if options.render is None:
        gpu = machine.gpu()
        if gpu is None or not _is_there("cupy"):
            print("no GPU or no CuPy here; --render FILE shows what was measured", file=sys.stderr)
            return 2
        jsonl.replace(options.data, chain([{"facts": facts.now(gpu)}], map(asdict, measure(SHAPES))))
    known, kept = read(options.data)
    pages.put(page(known, kept), options.render)
    return 0


if __name__ == "__main__":
    sys.exit(main())
