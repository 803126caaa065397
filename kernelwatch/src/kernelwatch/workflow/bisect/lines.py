"""The source lines of a kernel that differ between two commits, in text or in the cost of their memory accesses."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

from kernelwatch.counting.source_lines import COST, LINE
from kernelwatch.error_text import one_line
from kernelwatch.kernel import Launch
from kernelwatch.store import commit_checkout
from kernelwatch.store.git import GitError
from kernelwatch.workflow.select_results import CannotCompareError


def list_changed_lines(base: str, head: str, launch: Launch, root: Path) -> Iterator[str]:
    """Yield the source lines with memory accesses whose text or cost differs between two commits, with their costs.

    Lines of base begin with "-", lines of head with "+". Raises CannotCompareError if the launch cannot be counted at a
    commit.
    """
    with ThreadPoolExecutor() as pool:
        sides = list(pool.map(partial(_read_costs, launch, root), (base, head)))
    old, new = ([line[1:] for line in lines] for lines in sides)
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            for mark, lines in (("-", sides[0][old_start:old_end]), ("+", sides[1][new_start:new_end])):
                for number, text, *costs in lines:
                    yield f"{mark}{number:>5}  {text}"
                    yield from (f"{mark}       ^ {cost}" for cost in costs)


def _read_costs(launch: Launch, root: Path, commit: str) -> list[tuple[str, ...]]:
    """Return the source lines that access memory at a commit, each as (number, text, cost, ...)."""
    try:
        with commit_checkout.unpack_commit(commit, root) as folder:
            words = ("kernelwatch", "count", *str(launch).split())
            process = commit_checkout.run_python(folder, *words)
    except GitError as error:
        raise CannotCompareError(one_line(error)) from None
    if process.returncode:
        raise CannotCompareError(one_line(process.stderr.strip().rpartition("\n")[2]))
    costly_lines: list[tuple[str, ...]] = []
    for line in process.stdout.splitlines():
        if source := LINE.fullmatch(line):
            costly_lines.append((source["number"], source["text"].strip()))
        elif (cost := COST.fullmatch(line)) and costly_lines:
            costly_lines[-1] += (cost["text"],)
    return [line for line in costly_lines if line[2:]]
