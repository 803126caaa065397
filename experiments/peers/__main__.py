"""Times the same kernels by this suite and by other tools, and keeps what they say: `python -m experiments.peers`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from benchmarks.instruments import machine
from experiments.peers import configurations, data, nsight, results, rounds, summary, table, worker
from experiments.peers.configurations import DTYPE, FLAG_SET, KERNELS, SIDES
from experiments.peers.data import Failure, Reading
from experiments.peers.methods import METHODS, TRUTH
from experiments.peers.rounds import Task
from gpu_kernels import build, catalog
from gpu_kernels.errors import GpuKernelsError

OUT = rounds.ROOT / "docs" / "peers.jsonl"


def _listed(check: Callable[[str], object]) -> Callable[[str], list[str]]:
    """An argument's type: words between commas, each of which `check` accepts."""

    def parse(text: str) -> list[str]:
        words = text.split(",")
        for word in words:
            try:
                check(word)
            except (GpuKernelsError, KeyError, ValueError) as error:
                raise argparse.ArgumentTypeError(f"{word!r}: {error}") from None
        return words

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments.peers", description=__doc__)
    add = parser.add_argument
    add("--processes", type=int, default=10, help="rounds: fresh processes of each method")
    add("--sides", type=_listed(int), default=[*map(str, SIDES)], help="rows of the matrices, with commas between")
    add("--kernels", type=_listed(catalog.get), default=[*KERNELS], help="names, with commas between")
    add("--methods", type=_listed(METHODS.__getitem__), default=[*METHODS], help=f"of {', '.join(METHODS)}")
    add("--budget", type=float, default=450.0, help="seconds after which no process is started")
    add("--timeout", type=float, default=60.0, help="seconds that one process may take")
    add("--ncu", default="ncu", help="Nsight Compute's command line tool")
    add("--out", type=Path, default=OUT, help="the data, JSON lines")
    add("--render", type=Path, metavar="FILE", help="measure nothing; write the tables of the kept data to this file")
    return parser


class _Run:
    """One run: starts the processes that it is told to, and writes down what they found."""

    def __init__(self, options: argparse.Namespace, file: TextIO, verified: Path) -> None:
        self._options = options
        self._file = file
        self._verified = verified
        self._kernels: list[str] = options.kernels
        self._sides = list(map(int, options.sides))

    def start(self, task: Task) -> bool:
        """Run the task's process to its end, keep its entries; whether it measured anything."""
        kernels, sides = summary.costed(self._kernels, self._sides) if task.defaults else (self._kernels, self._sides)
        wanted = configurations.all_of(kernels, sides)
        command = worker.command(task.method, kernels, sides, self._verified, defaults=task.defaults)
        if task.method == TRUTH:
            command = nsight.command(self._options.ncu, command)
        lines, problem = self._attend(command)
        entries = list(results.entries(task, lines, problem, wanted))
        for entry in entries:
            self._file.write(data.line(entry))
            if isinstance(entry, Failure):
                print(f"{'':9}  {task}: {entry.error}", flush=True)
        self._file.flush()
        return any(isinstance(entry, Reading) for entry in entries)

    def _attend(self, command: list[str]) -> tuple[list[str], str | None]:
        if shutil.which(command[0]) is None:
            return [], f"{command[0]} is not on PATH"
        return rounds.attend(command, self._options.timeout)


def _measure(options: argparse.Namespace, gpu: machine.Gpu) -> list[Task]:
    """Run everything; the tasks for which there was no time."""
    began = time.perf_counter()
    for error in build.prebuild((kernel, DTYPE, FLAG_SET, gpu.arch) for kernel in options.kernels):
        if error is not None:
            raise error
    chosen = {name: METHODS[name] for name in METHODS if name in options.methods}
    ncu = nsight.version(options.ncu) if shutil.which(options.ncu) else None
    facts = data.facts(gpu, ncu, chosen)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as file, tempfile.TemporaryDirectory() as verified:
        file.write(data.line(facts))
        return rounds.run(
            rounds.schedule(chosen, options.processes),
            _Run(options, file, Path(verified)).start,
            lambda: time.perf_counter() - began,
            options.budget,
            lambda text: print(text, flush=True),
        )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, or render what was measured; the exit code."""
    options = _parser().parse_args(words)
    try:
        if options.render is None:
            gpu = machine.gpu()
            if gpu is None:
                print("there is no GPU here; --render FILE shows what was measured on one", file=sys.stderr)
                return 1
            left_out = _measure(options, gpu)
            if left_out:
                print(f"no time for {len(left_out)} processes: {'; '.join(map(str, left_out))}")
        text = table.render(data.read(options.out))
    except (GpuKernelsError, FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.render is None:
        print(text)
    else:
        options.render.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
