"""Asks a commit's package for numbers without a GPU: `ask` here, this module run with TASK there.

The other process has the commit's package first on Python's path, and today's instrument behind it. It reads what
is asked from standard input and writes the answer to standard output, both as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelwatch import settings, suite
from kernelwatch.command import one_line
from kernelwatch.counting import source_lines, transactions
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import prebuild
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.runner import package
from kernelwatch.store.git import GitError
from ptxcount import listing

#: A benchmark and its parameters.
Asked = tuple[str, dict[str, str]]

#: Multiprocessors of the devices for which launches are compared: a stored time does not say on how many it ran.
_DEVICES = range(1, 257)


class PackageError(CannotCompareError):
    """A commit's package cannot be used; the message says why in one line."""


def ask(commit: Commit, task: str, about: Any, root: Path) -> Any:
    """Return what a commit's package answers to one of TASKS, which takes `about`.

    Raises
    ------
    PackageError
        There is no such package, or it fails.
    """
    if not commit.package:
        raise PackageError(f"it has no {settings.package()}")
    try:
        with package.unpacked(commit.hash, root) as folder:
            done = package.python(
                folder, "kernelwatch.review.bisect.probe", task, input=json.dumps(about), output=subprocess.PIPE
            )
    except GitError as error:
        raise PackageError(f"git cannot unpack it: {one_line(error)}") from None
    if done.returncode:
        raise PackageError(one_line(done.stderr.strip().rpartition("\n")[2]))
    return json.loads(done.stdout)


def _values(asked: Sequence[Asked]) -> list[float | str]:
    """Return the number of each counted or compiled configuration, or why there is none."""
    is_counted = [suite.BENCHMARKS[each[0]][0] is suite.Kind.COUNTED for each in asked]
    counted = transactions.outcomes({_launch(*each) for each, is_one in zip(asked, is_counted, strict=True) if is_one})
    compiled = {_configuration(*each) for each, is_one in zip(asked, is_counted, strict=True) if not is_one}
    if len(compiled) > 1:  # on all cores; errors are met again below
        list(prebuild.compiled(sorted(compiled)))
    return [_value(*each, counted) for each in asked]


def _value(benchmark: str, params: dict[str, str], counted: dict[str, transactions.CountOutcome]) -> float | str:
    metric = benchmark.rpartition(".track_")[2]
    if suite.BENCHMARKS[benchmark][0] is suite.Kind.COUNTED:
        outcome = counted[str(_launch(benchmark, params))]
        return outcome.missing or outcome.failure or outcome.metrics[metric]
    try:
        kernel, dtype, flags, arch = _configuration(benchmark, params)
        return float(getattr(suite.kernel(kernel).cubin(dtype, flags, arch=arch).resources, metric))
    except ERRORS as error:
        return one_line(error)


def _launch(benchmark: str, params: dict[str, str]) -> Any:
    found = suite.launch(benchmark, params)
    assert found is not None, "it is one of the suite's"
    return found


def _configuration(benchmark: str, params: dict[str, str]) -> prebuild.Configuration:
    found = _launch(benchmark, params)
    return found.kernel, found.dtype, found.flags, params["arch"]


def _launched(asked: tuple[str, dict[str, str], str]) -> str:
    """Return the fingerprint of all that a launch gives a GPU: machine code, arguments, geometry on any device."""
    from kernelwatch.benchmarks import timed  # noqa: PLC0415 -- what times needs modules that other tasks do not wait for
    from kernelwatch.instrument import fingerprint  # noqa: PLC0415
    from kernelwatch.instrument.job import Ready  # noqa: PLC0415

    benchmark, params, arch = asked
    description = timed.described(suite.BENCHMARKS[benchmark][1], params)
    jobs = (description.job(Ready(arch=arch, multiprocessors=count)) for count in _DEVICES)
    return fingerprint.of(list(dict.fromkeys(fingerprint.job(job) for job in jobs)))


def _lines(asked: Asked) -> list[tuple[int, str, list[str]]]:
    """Return of each source line that accesses memory its number, its text, and what that costs in a counted launch."""
    launch = _launch(*asked)
    lines_of = source_lines.source(suite.kernel(launch.kernel), launch.dtype).lines_of()
    counters = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments).counters
    found = []
    for (file, line), accesses in counters.by_line().items():
        if file is not None and line is not None:
            costs = [f"{listing.cost(each)}; {each.requests} requests" for each in accesses]
            found.append((line, listing.text_of(file, line, lines_of), costs))
    return sorted(found)


#: What can be asked for.
TASKS: dict[str, Callable[[Any], Any]] = {
    "values": _values,
    "launched": _launched,
    "lines": _lines,
}


def main(words: Sequence[str]) -> int:
    """Answer; an error is told in the last line of standard error."""
    warnings.simplefilter("ignore")  # what nvcc remarks on is no concern of a search
    try:
        answer = TASKS[words[0]](json.load(sys.stdin))
    except (*ERRORS, NotImplementedError) as error:
        print(one_line(error), file=sys.stderr)
        return 1
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
