"""The source lines whose counted cost a commit moved."""

from __future__ import annotations

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernelwatch import package
from kernelwatch.command import one_line
from kernelwatch.counting.source_lines import COST, LINE
from kernelwatch.kernel import Launch
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.review.bisect.metric import Configuration, configurations
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.store.git import GitError
from kernelwatch.suite import Kind


@dataclass(frozen=True)
class Line:
    """What each access of a source line costs in a counted launch, before the commit or after it."""

    is_after: bool
    number: int
    text: str
    costs: tuple[str, ...]


def counted_launch(configuration: Configuration) -> Launch | None:
    """Return what to count of a configuration's kernel: its launch, or else the most like it."""
    launch = configuration.launch

    def likeness(other: Launch) -> tuple[int, bool]:
        return len(other.arguments.items() & launch.arguments.items()), other.flags == FLAGS

    every = (each.launch for each in configurations() if each.kind is Kind.COUNTED)
    same = (each for each in every if (each.kernel, each.dtype) == (launch.kernel, launch.dtype))
    return launch if configuration.kind is Kind.COUNTED else max(same, key=likeness, default=None)


def moved_lines(base: str, head: str, launch: Launch, root: Path) -> list[Line]:
    """Return the lines whose cost moved, as they were, then as they are. One whose text or place alone did is none.

    Raises CannotCompareError where a commit's kernel cannot be counted.
    """
    with ThreadPoolExecutor() as pool:
        sides = list(pool.map(partial(_lines, launch, root), (base, head), (False, True)))
    found = []
    for lines, others in (sides, sides[::-1]):
        more = Counter(each.costs for each in lines) - Counter(each.costs for each in others)
        same = {(each.text, each.costs) for each in others}
        for each in sorted(lines, key=lambda each: (each.text, each.costs) in same):  # those of another text first
            if more[each.costs] > 0:
                more[each.costs] -= 1
                found.append(each)
    return sorted(found, key=lambda each: (each.is_after, each.number))


def _lines(launch: Launch, root: Path, commit: str, is_after: bool) -> list[Line]:
    """Return the lines that access memory, by the listing of the commit's package."""
    try:
        with package.unpacked(commit, root) as folder:
            words = ("kernelwatch", "count", *str(launch).split())
            done = package.python(folder, *words, output=subprocess.PIPE)
    except GitError as error:
        raise CannotCompareError(one_line(error)) from None
    if done.returncode:
        raise CannotCompareError(one_line(done.stderr.strip().rpartition("\n")[2]))
    found: list[tuple[int, str, list[str]]] = []
    for line in done.stdout.splitlines():
        if source := LINE.fullmatch(line):
            found.append((int(source[2]), source[3].strip(), []))
        elif (cost := COST.fullmatch(line)) and found:
            found[-1][2].append(cost[2])
    return [Line(is_after, number, text, tuple(costs)) for number, text, costs in found if costs]
