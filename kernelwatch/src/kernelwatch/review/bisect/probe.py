"""Asks a commit's package for numbers without a GPU: `ask` here, this module run with TASK there.

The other process has the commit's package first on Python's path, and today's instrument behind it. It reads what
is asked from standard input and writes the answer to standard output, both as JSON.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelwatch import settings, suite
from kernelwatch.asv import package
from kernelwatch.command import one_line
from kernelwatch.counting import source_lines, transactions
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import prebuild, skips
from kernelwatch.kernel.launch import words
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.store.git import GitError
from ptxcount import listing

#: A benchmark and its parameters.
Asked = tuple[str, dict[str, str]]

#: Multiprocessors of the devices for which launches are compared: a stored time does not say on how many it ran.
_DEVICES = range(1, 257)


class PackageError(Exception):
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
    launches = {_launch(*each) for each in asked if suite.BENCHMARKS[each[0]][0] is suite.Kind.COUNTED}
    counted = transactions.outcomes(launches)
    compiled = [_configuration(*each) for each in asked if suite.BENCHMARKS[each[0]][0] is suite.Kind.COMPILED]
    if len(compiled) > 1:  # on all cores; errors are met again below
        list(prebuild.compiled(sorted(set(compiled))))
    return [_value(*each, counted) for each in asked]


def _value(benchmark: str, params: dict[str, str], counted: dict[str, transactions.CountOutcome]) -> float | str:
    metric = benchmark.rpartition(".track_")[2]
    if suite.BENCHMARKS[benchmark][0] is suite.Kind.COUNTED:
        outcome = counted[str(_launch(benchmark, params))]
        return outcome.missing or outcome.failure or outcome.metrics[metric]
    kernel, dtype, flag_set, arch = _configuration(benchmark, params)
    try:
        return float(getattr(suite.kernel(kernel).cubin(dtype, flag_set, arch=arch).resources, metric))
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
    from kernelwatch.asv import timed  # noqa: PLC0415 -- what times needs modules that other tasks do not wait for
    from kernelwatch.instrument import fingerprint  # noqa: PLC0415
    from kernelwatch.instrument.job import Ready  # noqa: PLC0415

    benchmark, params, arch = asked
    description = timed.CLASSES[benchmark].described(params)
    jobs = (description.job(Ready(arch=arch, multiprocessors=count)) for count in _DEVICES)
    return fingerprint.of(list(dict.fromkeys(fingerprint.job(job) for job in jobs)))


def _inputs(arch: str) -> list[tuple[prebuild.Configuration, str]]:
    """Return what is compiled for an architecture, each with a digest of what nvcc is given, and by which code."""
    return list(_described(arch))


def _described(asked: str) -> Iterator[tuple[prebuild.Configuration, str]]:
    own = (suite.folder() / f"{module}.py" for module in ("build", "compilers", "nvcc"))  # of packages up to CONTRACT 2
    how = [path.read_text(encoding="utf-8") for path in own if path.exists()]
    for configuration in prebuild.configurations([asked]):
        kernel, dtype, flag_set, arch = configuration
        try:
            spec = suite.kernel(kernel)
            spec.element(dtype)
            given = (*how, source_lines.source(spec, dtype, arch), *spec.options(dtype), *words(flag_set))
        except skips.UNKNOWN:
            continue
        yield configuration, hashlib.sha256(repr(given).encode()).hexdigest()


def _cubins(wanted: Sequence[Sequence[str]]) -> list[str | None]:
    """Return the hash of each configuration's machine code; None where it does not compile."""
    configurations = [(kernel, dtype, flag_set, arch) for kernel, dtype, flag_set, arch in wanted]
    errors = prebuild.compiled(configurations) if configurations else iter(())
    return [
        None if error else suite.kernel(kernel).cubin(dtype, flag_set, arch=arch).sha256
        for (kernel, dtype, flag_set, arch), error in zip(configurations, errors, strict=True)
    ]


def _lines(asked: Asked) -> list[dict[str, Any]]:
    """Return what each source line does to memory in a counted launch."""
    launch = _launch(*asked)
    lines_of = source_lines.lines_of(suite.kernel(launch.kernel), launch.dtype)
    counters = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments).counters
    found: dict[tuple[str, int, str], dict[str, int]] = defaultdict(lambda: dict.fromkeys(("requests", "units"), 0))
    for access in counters.accesses:
        if access.source.line is not None and access.space in ("global", "shared"):
            totals = found[access.source.file or "", access.source.line, f"{access.space} {access.kind}"]
            totals["requests"] += access.requests
            totals["units"] += access.sectors if access.space == "global" else access.wavefronts
    return [
        {"line": line, "text": listing.text_of(file, line, lines_of), "access": access, **totals}
        for (file, line, access), totals in sorted(found.items())
    ]


#: What can be asked for.
TASKS: dict[str, Callable[[Any], Any]] = {
    "values": _values,
    "launched": _launched,
    "inputs": _inputs,
    "cubins": _cubins,
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
