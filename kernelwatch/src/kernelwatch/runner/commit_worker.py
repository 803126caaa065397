"""The process of a commit. It imports the commit's package, and this library and the suite from the checkout.

`python -m kernelwatch.runner.commit_worker BENCHMARKS` sends the benchmarks that it discovers, reads a task from
standard input, and sends the outcome of each configuration. It and the processes that it forks end with the run.
"""

import inspect
import io
import json
import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from asv_runner.benchmarks import _base
from asv_runner.discovery import list_benchmarks

import kernelwatch.instrument.parent_death  # noqa: F401 -- forked processes end with this one
from kernelwatch.error_text import format_exit, one_line
from kernelwatch.errors import KernelwatchError
from kernelwatch.instrument import client
from kernelwatch.kernel.generators import list_generators
from kernelwatch.runner.protocol import Discovery, ImportFailure, Sender, Task
from kernelwatch.suite import registry


def main(folder: str) -> int:
    """Send the discovery, then perform the task on standard input; return the exit code."""
    send = Sender(os.dup(sys.stdout.fileno()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # standard output is for messages only
    warnings.simplefilter("ignore")  # warnings of nvcc do not concern a run
    try:
        send(_discover_benchmarks(folder))
    except Exception as error:  # noqa: BLE001 -- the project's code may raise any error
        send(ImportFailure(_format_import_error(error), isinstance(error.__cause__ or error, ImportError)))
        return 1
    line = sys.stdin.buffer.readline()
    if line:
        _perform_task(msgspec.json.decode(line, type=Task), send)
    return 0


def _discover_benchmarks(folder: str) -> Discovery:
    suite, output = registry.current_suite(), io.StringIO()
    with _faster_discovery():
        list_benchmarks(folder, output)
    generators = list_generators(suite.kernels().values())
    return Discovery(json.loads(output.getvalue()), suite.benchmarks_by_class, generators)


@contextmanager
def _faster_discovery() -> Iterator[None]:
    """Let asv_runner read each function once, not for each benchmark.

    Its slow hash of tokens is only an alternative version, which discovery does not list; `str` replaces it.
    """
    read_lines, hash_tokens = inspect.getsourcelines, _base.code_fingerprint
    lines_by_place = dict[tuple[str, int], tuple[list[str], int]]()

    def read_once(object: Any) -> tuple[list[str], int]:
        code = getattr(inspect.unwrap(object), "__code__", None)
        if code is None:
            return read_lines(object)
        place = (code.co_filename, code.co_firstlineno)
        if place not in lines_by_place:
            lines_by_place[place] = read_lines(object)
        return lines_by_place[place]

    inspect.getsourcelines, _base.code_fingerprint = read_once, str
    try:
        yield
    finally:
        inspect.getsourcelines, _base.code_fingerprint = read_lines, hash_tokens


def _format_import_error(error: BaseException) -> str:
    """Return an error as one line, with paths relative to the commit's package."""
    text = str(error) if isinstance(error, KernelwatchError) else f"{type(error).__name__}: {error}"
    return one_line(text.replace(f"{Path.cwd()}/", ""))


def _perform_task(task: Task, send: Sender) -> None:
    """Measure the task's times; meanwhile, compile and count in a process that is forked before this one has threads.

    If no time can be measured, this process compiles and counts itself.
    """
    from kernelwatch.runner import measure_counts  # noqa: PLC0415 -- so that errors of the suite are reported first

    def count() -> None:
        os.nice(19)  # leave the cores to the measurement and to the writers of references
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[len(cores) // 4 :])
        measure_counts.compile_and_count(task, send)

    counting = multiprocessing.get_context("fork").Process(target=count)
    timed_groups = measure_counts.sweeps_by_class(registry.Kind.TIMED).keys() & task.indices.keys()
    if task.interleaved_index is not None or timed_groups:
        from kernelwatch.runner import measure_times  # noqa: PLC0415 -- not needed for counting and compiling

        measure_times.measure_task(task, send, os.environ.get(client.ADDRESS), counting.start)
    if counting.pid is None:  # not started
        measure_counts.compile_and_count(task, send)
        return
    counting.join()
    if counting.exitcode:
        raise RuntimeError(f"the process that counts and compiles {format_exit(counting.exitcode)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
