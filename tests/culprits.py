"""A history with planted changes, and what the search for a culprit makes of it and of this repository's own commits.

``python -m tests.culprits docs/evidence/culprits.md`` searches 64 commits with all changes, and writes the page.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.review.bisect.__main__ import main as bisect
from kernelwatch.review.bisect.commits import between
from tests import six_commits
from tests.repository import Repository

SOURCES = "gpu_kernels/kernels"

KERNELS = ("offset_copy", "stride_copy", "transpose_read_write_coalesced", "add_coalesced", "matmul_tiled")

#: Fewer flag sets, so that less is compiled to say which machine code changed.
VALUES: dict[tuple[str, str], Sequence[str | int]] = {("gpu_kernels/flags.py", "FLAG_SETS"): ("-Xptxas -O3",)}

RIGHT = "output[index * stride] = input[index * stride];"

#: Many values alive at once: more registers a thread. The output is what it was.
HUNGRY = """ELEMENT values[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) values[i] = input[(index + i) % size * stride];
        #pragma unroll
        for (int i = 15; i >= 0; --i) output[(index + i) % size * stride] = values[i];"""


class Planted(NamedTuple):
    """A change that moves a number: its file, the old and the new text, and METRIC."""

    file: str
    old: str
    new: str
    metric: str


PLANTED = {
    "misaligned": Planted(
        six_commits.COPY, six_commits.ALIGNED, six_commits.MISALIGNED, "load_sectors offset_copy offset=0 float32 -O3"
    ),
    "hungry": Planted(f"{SOURCES}/stride_copy.cu", RIGHT, HUNGRY, "registers stride_copy float32 -O3 sm_90"),
    "no padding": Planted(
        f"{SOURCES}/transpose.cu",
        "transpose_through_tile<1>",
        "transpose_through_tile<0>",
        "bank_conflicts transpose_read_write_coalesced float32 -O3",
    ),
    "not coalesced": Planted(
        f"{SOURCES}/add.cu",
        "add(output, a, b, size, threadIdx.y * WARP + threadIdx.x);",
        "add(output, a, b, size, threadIdx.x * WARP + threadIdx.y);",
        "load_sectors add_coalesced float32 -O3",
    ),
    "few registers": Planted(
        "gpu_kernels/spec.py",
        "return self.operation.element(dtype).options(computes=self.operation.computes)",
        'return (*self.operation.element(dtype).options(computes=self.operation.computes), "-maxrregcount=24")',
        "spill_bytes matmul_tiled float32 -O3 sm_90",
    ),
}

#: Numbers that no planted change moves.
STEADY = ("bank_conflicts matmul_tiled float32 -O3", "store_sectors transpose_read_write_coalesced float32 -O3")


@dataclass
class History:
    """A repository, its commits, oldest first, and which of them are planted, by name."""

    repository: Repository
    commits: list[str] = field(default_factory=list)
    planted: dict[str, str] = field(default_factory=dict)

    def commit(self, message: str) -> str:
        """Commit everything."""
        self.commits.append(self.repository.commit(message))
        return self.commits[-1]

    def append(self, file: str, line: str) -> None:
        """Add a line at the end of a file."""
        path = self.repository.path / file
        path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")

    def plant(self, name: str) -> None:
        """Commit a planted change."""
        self.repository.replace(*PLANTED[name][:3])
        self.planted[name] = self.commit(name)

    def neutral(self, number: int) -> None:
        """Commit what moves no number: outside of the package, in a comment, in a docstring, in a name."""
        remark = f"remark {number}"
        files = {
            "README.md": remark,
            f"{SOURCES}/{('offset_copy', 'stride_copy', 'add')[number % 3]}.cu": f"// {remark}",
            "gpu_kernels/catalog.py": f"# {remark}",
            "gpu_kernels/operations.py": f"_REMARK = {remark!r}",
        }
        file = list(files)[number % len(files)]
        self.append(file, files[file])
        self.commit(f"neutral: {file}")

    def broken(self, number: int, inside: str | None = None) -> None:
        """Commit what does not build, perhaps a planted change on top, and what mends it."""
        file, fault = (f"{SOURCES}/stride_copy.cu", "#error") if number % 2 else ("gpu_kernels/__init__.py", "1 / 0")
        path = self.repository.path / file
        text = path.read_text(encoding="utf-8")
        self.append(file, fault)
        self.commit("does not build")
        if inside is not None:
            self.plant(inside)
            text = text.replace(PLANTED[inside].old, PLANTED[inside].new) if PLANTED[inside].file == file else text
        path.write_text(text, encoding="utf-8")
        self.commit("builds again")


def build(folder: Path, count: int, planted: Sequence[str], broken: int, seed: int = 20) -> History:
    """Make a history.

    Parameters
    ----------
    folder : Path
        An empty one.
    count : int
        Commits.
    planted : sequence of str
        Names of PLANTED, each somewhere.
    broken : int
        How often two commits stand for one that does not build and one that mends it.
    seed : int
        Of the order.
    """
    history = History(Repository(folder, KERNELS, VALUES))
    history.commit("as it is")
    kinds = [*planted, *["broken"] * broken]
    kinds += ["neutral"] * (count - 2 - len(planted) - 2 * broken)
    random.Random(seed).shuffle(kinds)
    for number, kind in enumerate([*kinds, "neutral"]):
        if kind in PLANTED:
            history.plant(kind)
        else:
            getattr(history, kind)(number)
    assert len(history.commits) == count
    return history


def searched(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Search; the exit code and the JSON."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = bisect([*words, "--json"], root)
    return code, json.loads(printed.getvalue() or "{}", parse_constant=str)


#: What is searched in this repository: METRIC, GOOD, BAD, and the machine whose results count.
OWN = (
    ("bank_conflicts transpose_read_write_coalesced float32 -O3", "f22cf79", "952ced2", "nvidia-h200"),
    ("time transpose_read_write_coalesced 12800x12800 float32 -O3", "f22cf79", "952ced2", "nvidia-h200"),
    ("time transpose_read_write_coalesced 12800x12800 float32 -O3", "926c240", "952ced2", "nvidia-h200"),
    ("registers transpose_vectorized float32 -O3 sm_90", "f30f4e4", "ee4e49a", "nvidia-h200"),
    ("time transpose_vectorized 5003x2999 float16 -O3", "f30f4e4", "ee4e49a", "nvidia-h200"),
)

_PAGE = """# Culprits

`make bisect` finds the commit that moved a number: [Find the commit](../find-the-commit.md). This page shows what it
found where the answer is known, and on this repository's own commits. `make culprits` makes it. {date}, {cores}
cores, no GPU, nvcc {nvcc}. The seconds were taken beside other work.

## Planted changes

A history of {count} commits holds {planted} planted changes and {broken} commits that do not build, each mended by
the next. All others move no number. Of the commits behind the first, {touching} touch `gpu_kernels`; the rest are
never looked at. Kernels are compiled and executed for real. A commit that was *built* was compiled to judge it; good
and bad are built, too.

{table}

## This repository's commits

The searches use what `results/` holds, and compile what it lacks. Times are of an H200. No GPU was needed: commits
without a time launch the same machine code as one that has a time.

{own}
"""


def _table(history: History) -> str:
    """Search every planted change and every steady number; a row each."""
    rows = []
    metrics = {**{name: PLANTED[name].metric for name in history.planted}, **dict.fromkeys(STEADY, "")}
    for name, metric in metrics.items():
        began = time.monotonic()
        code, found = searched(history.repository.path, metric or name, history.commits[0], history.commits[-1])
        seconds = time.monotonic() - began
        culprit = (found.get("culprit") or {}).get("commit")
        known = history.planted.get(name)
        outcome = {(True, 0): "found", (True, 1): "none, as planted"}.get((culprit == known, code), f"WRONG: {culprit}")
        sources = [step["source"] for step in found["steps"]]
        place = history.commits.index(known) + 1 if known else ""
        built, skipped = sources.count("built"), sources.count("skipped")
        rows.append((metric or name, place, outcome, len(sources), built, skipped, f"{seconds:.0f}"))
    headers = ("METRIC", "commit", "outcome", "looked at", "built", "do not build", "seconds")
    return str(tabulate(rows, headers, tablefmt="github"))


def _own(metric: str, good: str, bad: str, name: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        bisect([metric, good, bad, "--machine", name], ROOT)
    return f"```\n$ make bisect METRIC={metric!r} GOOD={good} BAD={bad} MACHINE={name}\n{printed.getvalue()}```\n"


def main(words: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser("python -m tests.culprits", description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--commits", type=int, default=64)
    options = parser.parse_args(words)
    broken = options.commits // 6
    with tempfile.TemporaryDirectory() as folder:
        history = build(Path(folder), options.commits, list(PLANTED), broken)
        touching = len(between(history.commits[0], history.commits[-1], history.repository.path)) - 1
        table = _table(history)
    options.page.write_text(
        _PAGE.format(
            date=datetime.now(timezone.utc).date(),
            cores=machine.host()["cores"],
            nvcc=machine.nvcc_release(),
            count=options.commits,
            planted=len(PLANTED),
            broken=broken,
            touching=touching,
            table=table,
            own="\n".join(_own(*each) for each in OWN),
        ),
        encoding="utf-8",
    )
    return 1 if "WRONG" in table else 0


if __name__ == "__main__":
    sys.exit(main())
