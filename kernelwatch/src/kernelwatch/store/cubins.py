"""Which machine code each commit's kernels had: recorded by each run."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import Launch
from kernelwatch.store import reading
from kernelwatch.store.record import CUBINS_FILE, paths
from kernelwatch.toolchain import releases as compilers


class _Hashes(msgspec.Struct):
    """A recorded line, as far as any run wrote one: by a launch's text without arguments."""

    commit: str
    arch: str
    cubins: dict[str, str]
    nvcc: str | None = None
    code: dict[str, str] = {}
    blocks: dict[str, tuple[int, int]] = {}


class Cubins:
    """The hashes of one machine's cubins by one compiler, and those that the same compiler made on another machine.

    The same source, options, architecture and nvcc make the same bytes anywhere (a test with PyCUDA holds this), so a
    machine without a GPU tells what one with a GPU ran, where a run of that one noted no hashes. Of two lines for one
    commit, architecture and nvcc, the machine's own and then the later counts, name by name.

    Parameters
    ----------
    folder : Path
        The machine's folder under `results/`.
    compiler : str, optional
        The compiler, as `kernelwatch.toolchain.releases` calls it; the default's without one.
    commit : str, optional
        The only commit whose hashes are read.
    """

    def __init__(self, folder: Path, compiler: str | None = None, commit: str = "") -> None:
        self._compiler, self._commit = compiler, commit
        self._known: dict[tuple[str, str], dict[str, str]] = {}
        self._codes: dict[tuple[str, str], dict[str, str]] = {}
        self._blocks: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        for other in reading.listed(folder.parent, "*"):
            if other != folder:
                self._read(other)
        own = self._read(folder)  # last: its own hashes count
        #: The architectures that some run compiled for, this machine's first.
        self.archs = sorted({arch for _, arch in self._known}, key=lambda arch: (arch not in own, arch))

    def _read(self, folder: Path) -> set[str]:
        """Read a machine's lines; the architectures that they name."""
        every = (line for path in paths(folder, CUBINS_FILE, self._commit) for line in _read_lines(path, self._commit))
        lines = [line for line in every if line.cubins and compilers.series_name(line.nvcc) == self._compiler]
        for line in lines:
            self._known.setdefault((line.commit, line.arch), {}).update(line.cubins)
            self._codes.setdefault((line.commit, line.arch), {}).update(line.code)
            self._blocks.setdefault((line.commit, line.arch), {}).update(line.blocks)
        return {line.arch for line in lines}

    def sha256(self, commit: str, arch: str, launch: str) -> str | None:
        """The hash of a launch's cubin on a commit, hexadecimal; None where no run stored it."""
        return self._known.get((commit, arch), {}).get(launch)

    def code(self, commit: str, arch: str, launch: str) -> str | None:
        """The hash of a launch's machine code alone, which two compilers can share; None where no run stored it."""
        return self._codes.get((commit, arch), {}).get(launch)

    def block(self, commit: str, arch: str, kernel: str, dtype: str) -> tuple[int, int] | None:
        """The threads of a kernel's block and its bytes of dynamic shared memory; None where no run stored them."""
        return self._blocks.get((commit, arch), {}).get(f"{kernel} {dtype}")

    def runs(self, commits: Sequence[str], arch: str) -> dict[str, list[tuple[int, str | None]]]:
        """The history of every kernel's machine code: where in `commits`, oldest first, another hash begins, and which.

        None is the hash from where on none is stored. What no commit has is left out.
        """
        stored = [self._known.get((commit, arch), {}) for commit in commits]
        return {
            name: [
                (index, now.get(name))
                for index, (before, now) in enumerate(itertools.pairwise([{}, *stored]))
                if now.get(name) != before.get(name)
            ]
            for name in sorted(set().union(*stored))
        }


def _read_lines(path: Path, commit: str) -> Iterator[_Hashes]:
    """Yield a file's lines, or those of a commit, by the names of machine code."""
    for _, line in reading.lines(path, _Hashes, commit):
        line.cubins, line.code = (
            {launch: sha256 for name, sha256 in hashes.items() if (launch := _machine_code(name)) is not None}
            for hashes in (line.cubins, line.code)
        )
        yield line


@functools.cache
def _machine_code(name: str) -> str | None:
    """The name of a launch's machine code; None of what is no launch. Every run stores the same ones."""
    try:
        return Launch.parse(name).code_name
    except ArgumentError:
        return None
