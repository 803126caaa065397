"""A history with planted changes, to search for a culprit."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.review.commands import bisect
from tests import six_commits
from tests.repository import Repository

SOURCES = "gpu_kernels/kernels"

KERNELS = ("offset_copy", "stride_copy", "transpose_read_write_coalesced")

#: Fewer flag sets, so that less is compiled to say which machine code changed.
VALUES: dict[tuple[str, str], Sequence[str | int]] = {
    ("benchmarks/sweeps.py", name): ("-Xptxas -O3",) for name in ("FLAG_SETS", "COPY_FLAG_SETS")
}

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
}

#: A number that no planted change moves.
STEADY = "store_sectors transpose_read_write_coalesced float32 -O3"


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
            "gpu_kernels/references.py": f"_REMARK = {remark!r}",
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
