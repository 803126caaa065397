"""Times the same kernels with this suite and with other tools, round by round, and keeps the results.

`python -m experiments.peers`
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments import nsight, pages
from experiments.peers import data, page, worker
from experiments.peers.data import Failure, Line, MethodTime, Task
from experiments.peers.launcher import KERNELS, SIDES, square
from experiments.peers.methods import METHODS, TRUTH, Method
from gpu_kernels import build, catalog, flags, sweep
from gpu_kernels.errors import GpuKernelsError
from gpu_kernels.operations import TRANSPOSE
from kernelwatch.instrument import machine
from kernelwatch.store import jsonl

#: Number of times that a method may measure nothing before it is given up.
ATTEMPTS = 2


def schedule(methods: Mapping[str, Method], processes: int) -> Iterator[Task]:
    """Yield all tasks in order, each method once a round, so that a drift of the GPU meets all alike.

    If time runs out, rounds are lost, but no method is.
    """
    for process in range(processes):
        yield from (Task(name, process) for name in methods)
        if process == 0:
            yield from (Task(name, process, defaults=True) for name, method in methods.items() if method.settings)


def run(
    tasks: Iterable[Task],
    entries_of: Callable[[Task], Sequence[Line]],
    budget: float,
    clock: Callable[[], float],
) -> Iterator[Line]:
    """Yield what the processes of tasks find, started one after the other.

    Parameters
    ----------
    tasks : iterable of Task
        What to start, in order.
    entries_of : callable
        Starts one and waits for it. What twice measured nothing is not started again.
    budget : float
        Seconds in all; a task is expected to take what its method's last one took, and left out if that is too long.
    clock : callable
        Seconds since the beginning.
    """
    took: dict[tuple[str, bool], float] = {}
    in_vain: Counter[tuple[str, bool]] = Counter()
    left_out = []
    for task in tasks:
        kind = (task.method, task.defaults)
        if in_vain[kind] == ATTEMPTS:
            continue
        begin = clock()
        if begin + took.get(kind, 0.0) >= budget:
            left_out.append(str(task))
            continue
        entries = entries_of(task)
        in_vain[kind] += not any(isinstance(entry, MethodTime) for entry in entries)
        took[kind] = clock() - begin
        errors = [entry.error for entry in entries if isinstance(entry, Failure)]
        print(f"{clock():7.1f} s  {task}: {took[kind]:.1f} s", *errors, sep=f"\n{'':11}", flush=True)
        yield from entries
    if left_out:
        print(f"no time for {len(left_out)} processes: {'; '.join(left_out)}")


def _measure(options: argparse.Namespace, gpu: machine.Gpu) -> Iterator[dict[str, Any]]:
    """Yield the facts of a run, then what its processes find."""
    began = time.perf_counter()
    for error in build.prebuild((kernel, sweep.DTYPE, flags.DEFAULT, gpu.arch) for kernel in options.kernels):
        if error is not None:
            raise error
    launches = [square(kernel, side) for side in options.sides for kernel in options.kernels]
    chosen = {name: method for name, method in METHODS.items() if name in options.methods}
    yield data.facts(gpu, nsight.version(options.ncu), chosen)

    def entries_of(task: Task) -> list[Line]:
        wanted = page.costed(launches) if task.defaults else launches
        command = worker.command(task.method, wanted, defaults=task.defaults)
        if task.method == TRUTH:
            command = nsight.command(options.ncu, command)
        return list(data.entries(task, *worker.attend(command, options.timeout), wanted))

    tasks = schedule(chosen, options.processes)
    yield from map(asdict, run(tasks, entries_of, options.budget, lambda: time.perf_counter() - began))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments.peers", description=__doc__)
    add = parser.add_argument
    add("--processes", type=int, default=10, help="rounds: fresh processes of each method")
    add("--sides", nargs="+", type=int, default=SIDES, metavar="SIDE", help="rows of the matrices")
    add(
        "--kernels",
        nargs="+",
        default=KERNELS,
        choices=catalog.performing(TRANSPOSE),
        metavar="NAME",
        help="transposes",
    )
    add("--methods", nargs="+", default=[*METHODS], choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)}")
    add("--budget", type=float, default=450.0, help="seconds after which no process is started")
    add("--timeout", type=float, default=60.0, help="seconds that one process may take")
    add("--ncu", default="ncu", help="Nsight Compute's command line tool")
    add("--out", type=Path, default=pages.EVIDENCE / "peers.jsonl", help="the data, JSON lines")
    add("--render", type=Path, metavar="FILE", help="measure nothing; write the tables of the kept data to this file")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Measure, or render what was measured; the exit code."""
    options = _parser().parse_args(words)
    try:
        if options.render is None:
            gpu = machine.gpu()
            if gpu is None:
                print("there is no GPU here; --render FILE shows what was measured on one", file=sys.stderr)
                return 1
            jsonl.replace(options.out, _measure(options, gpu))
        pages.put(page.page(data.read(options.out)), options.render)
    except (GpuKernelsError, FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
