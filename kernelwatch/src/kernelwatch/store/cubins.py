"""The recorded hashes of the machine code of each commit's kernels."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import Launch
from kernelwatch.store import reading
from kernelwatch.store.record import CUBINS_FILE, list_record_paths
from kernelwatch.toolchain import releases as compilers


class _HashLine(msgspec.Struct):
    """A line of the record. Its hashes are by the name of the machine code: a launch's text without its arguments."""

    commit: str
    arch: str
    cubins: dict[str, str]
    nvcc: str | None = None
    code: dict[str, str] = {}
    blocks: dict[str, tuple[int, int]] = {}


class CubinHashes:
    """The hashes of one machine's cubins by one compiler, completed with those of other machines by the same compiler.

    The same source, options, architecture and nvcc give the same bytes on any machine; a test with PyCUDA checks this.
    So hashes from a machine without a GPU are valid for a GPU machine that recorded none. Hashes of the machine itself
    are preferred, then those of the last machine by name.

    Parameters
    ----------
    folder : Path
        The machine's folder under `results/`.
    compiler : str, optional
        The compiler, named as in `kernelwatch.toolchain.releases`; by default the default compiler.
    commit : str, optional
        Read only the hashes of this commit.
    """

    def __init__(self, folder: Path, compiler: str | None = None, commit: str = "") -> None:
        self._compiler, self._commit = compiler, commit
        self._cubin_hashes: dict[tuple[str, str], dict[str, str]] = {}
        self._code_hashes: dict[tuple[str, str], dict[str, str]] = {}
        self._blocks: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        for machine_folder in reading.list_paths(folder.parent):
            if machine_folder != folder:
                self._read_machine(machine_folder)
        own_archs = self._read_machine(folder)  # last, so that its own hashes are preferred
        #: The architectures with recorded hashes, those of this machine first.
        self.archs = sorted({arch for _, arch in self._cubin_hashes}, key=lambda arch: (arch not in own_archs, arch))

    def _read_machine(self, folder: Path) -> set[str]:
        """Add the hashes in a machine's folder, which replace earlier ones; return their architectures."""
        archs = set[str]()
        for path in list_record_paths(folder, CUBINS_FILE, self._commit):
            for line in _read_lines(path, self._commit):
                if line.cubins and compilers.series_name(line.nvcc) == self._compiler:
                    archs.add(line.arch)
                    self._cubin_hashes.setdefault((line.commit, line.arch), {}).update(line.cubins)
                    self._code_hashes.setdefault((line.commit, line.arch), {}).update(line.code)
                    self._blocks.setdefault((line.commit, line.arch), {}).update(line.blocks)
        return archs

    def find_cubin_hash(self, commit: str, arch: str, code_name: str) -> str | None:
        """Return the hexadecimal SHA-256 of the cubin with the named machine code; None if not stored."""
        return self._cubin_hashes.get((commit, arch), {}).get(code_name)

    def find_code_hash(self, commit: str, arch: str, code_name: str) -> str | None:
        """Return the SHA-256 of the machine code alone, which two compilers may share; None if not stored."""
        return self._code_hashes.get((commit, arch), {}).get(code_name)

    def find_block_resources(self, commit: str, arch: str, kernel: str, dtype: str) -> tuple[int, int] | None:
        """Return the threads of a kernel's block and its bytes of dynamic shared memory; None if not stored."""
        return self._blocks.get((commit, arch), {}).get(f"{kernel} {dtype}")

    def list_hash_changes(self, commits: Sequence[str], arch: str) -> dict[str, list[tuple[int, str | None]]]:
        """Return name of machine code -> its changes, each as (index in `commits`, new hash or None if not stored).

        `commits` are oldest first. Names without any hash are left out. If a hash changes at the fourth commit:
        {"saxpy float32": [(0, "44"), (3, "55")]}.
        """
        stored = [self._cubin_hashes.get((commit, arch), {}) for commit in commits]
        return {
            name: [
                (index, current.get(name))
                for index, (previous, current) in enumerate(itertools.pairwise([{}, *stored]))
                if current.get(name) != previous.get(name)
            ]
            for name in sorted(set().union(*stored))
        }


def _read_lines(path: Path, commit: str) -> Iterator[_HashLine]:
    for _, line in reading.iter_lines(path, _HashLine, commit):
        line.cubins, line.code = (
            {code_name: sha256 for key, sha256 in hashes.items() if (code_name := _find_code_name(key)) is not None}
            for hashes in (line.cubins, line.code)
        )
        yield line


@functools.cache  # all runs repeat the keys
def _find_code_name(key: str) -> str | None:
    try:
        return Launch.parse(key).code_name
    except ArgumentError:
        return None
