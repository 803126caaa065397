"""Starting the processes: round by round, each method once a round, so that a drift of the GPU meets all alike."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.peers.methods import Method

ROOT = Path(__file__).parents[2]

#: So often a method may measure nothing before it is given up.
ATTEMPTS = 2


@dataclass(frozen=True)
class Task:
    """One process to start: a method, its round, and whether it shows what the method's own defaults cost."""

    method: str
    process: int
    defaults: bool = False

    def __str__(self) -> str:
        return f"{self.method}, {'defaults' if self.defaults else f'process {self.process}'}"


def schedule(methods: Mapping[str, Method], processes: int) -> Iterator[Task]:
    """All tasks in order: what is lost when time runs out is rounds, never a whole column."""
    for process in range(processes):
        yield from (Task(name, process) for name in methods)
        if process == 0:
            yield from (Task(name, process, defaults=True) for name, method in methods.items() if method.settings)


def attend(command: Sequence[str], timeout: float) -> tuple[list[str], str | None]:
    """Run a process; return the lines of its standard output, and what went wrong, if anything.

    Parameters
    ----------
    timeout : seconds; then it is killed with all that it started. What it had printed counts.
    """
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, text=True, errors="replace", **pipes) as process:
        problem = None
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # ncu's child too
            out, err = process.communicate()
            problem = f"took longer than {timeout:g} s"
        if problem is None and process.returncode != 0:
            said = err.strip().splitlines() or ["nothing on standard error"]
            problem = f"exit code {process.returncode}: {said[-1]}"
    return out.splitlines(), problem


def run(
    tasks: Iterable[Task],
    start: Callable[[Task], bool],
    clock: Callable[[], float],
    budget: float,
    say: Callable[[str], None],
) -> list[Task]:
    """Start the tasks one after the other; return those left out because they would not have fitted the budget.

    Parameters
    ----------
    start : starts one and waits for it; whether it measured anything. What twice did not is not started again.
    clock : seconds since the beginning.
    budget : seconds in all; a task is expected to take what its method's last one took.
    say : shows a line of progress.
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
            left_out.append(task)
            continue
        in_vain[kind] += not start(task)
        took[kind] = clock() - begin
        say(f"{clock():7.1f} s  {task}: {clock() - begin:.1f} s")
    return left_out
