"""The process of a commit: it has the commit's package, this checkout's instrument and suite, and tells the run of all.

`python -m kernelwatch.runner.commit_worker BENCHMARKS` says which benchmarks there are, reads a task from standard
input, and says what became of each configuration that is wanted. It ends with the run, and so does all that it forks.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import sys
import warnings
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
from asv_runner.discovery import list_benchmarks

import kernelwatch.instrument.parent_death  # noqa: F401 -- what is forked ends with this process
from kernelwatch.error_text import one_line
from kernelwatch.errors import KernelwatchError
from kernelwatch.instrument import client
from kernelwatch.runner.protocol import Discovery, Refusal, Sender, Task
from kernelwatch.suite import registry


def main(folder: str) -> int:
    """Tell, and do what is asked."""
    send = Sender(os.dup(sys.stdout.fileno()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anybody prints is no message
    warnings.simplefilter("ignore")  # what nvcc remarks on is no concern of a run
    try:
        send(_discovered(folder))
    except Exception as error:  # noqa: BLE001 -- whatever the project's code raises
        send(Refusal(_told(error), isinstance(error.__cause__ or error, ImportError)))
        return 1
    line = sys.stdin.buffer.readline()
    if line:
        _work(msgspec.json.decode(line, type=Task), send)
    return 0


def _discovered(folder: str) -> Discovery:
    """Find the benchmarks as asv does, and which of them are numbers of one measurement."""
    groups, found = registry.current().together, io.StringIO()
    list_benchmarks(folder, found)
    return Discovery(json.loads(found.getvalue()), groups)


def _told(error: BaseException) -> str:
    """Return an error as a line; files of the commit's package by their names in it."""
    said = str(error) if isinstance(error, KernelwatchError) else f"{type(error).__name__}: {error}"
    return one_line(said.replace(f"{Path.cwd()}/", ""))


def _work(task: Task, send: Sender) -> None:
    """Measure; compile and count meanwhile, in a process that is forked before this one has threads."""
    from kernelwatch.runner import measure_counts  # noqa: PLC0415 -- the suite says first what is wrong with it

    beside: list[BaseProcess] = []

    def count() -> None:
        os.nice(19)  # some cores are left to who measures and who writes references
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[len(cores) // 4 :])
        measure_counts.send_all(task, send)

    def begin() -> None:
        beside.append(multiprocessing.get_context("fork").Process(target=count))
        beside[0].start()

    if task.turn is not None or measure_counts.groups(registry.Kind.TIMED).keys() & task.places.keys():
        from kernelwatch.runner import measure_times  # noqa: PLC0415 -- who counts and compiles does without

        measure_times.send_all(task, send, os.environ.get(client.ADDRESS), begin)
    if not beside:
        measure_counts.send_all(task, send)
    for process in beside:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"what counts and compiles ended with {process.exitcode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
