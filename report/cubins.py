"""Which machine code each commit's kernels had: `results/<machine>/cubins.jsonl`, written by each run of asv."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from benchmarks.jsonl import lines
from gpu_kernels.sweep import Launch
from runner import record
from runner.record import CUBINS_FILE


class Cubins:
    """The hashes of one machine's cubins, and those that the same compiler made on another machine.

    The same source, options, architecture and nvcc make the same bytes anywhere (tests/test_pycuda.py), so a machine
    without a GPU tells what one with a GPU ran, where a run of that one noted no hashes.

    Its file holds a line a run, commit and architecture: `{"commit": "...", "arch": "sm_90", "cubins": {"kernel dtype
    flags": "sha256"}}`. Of two lines for one commit and architecture, the later counts, name by name.

    Parameters
    ----------
    folder : Path
        The machine's folder under `results/`.

    Raises
    ------
    ValueError
        A line is not as above.
    """

    def __init__(self, folder: Path) -> None:
        self._known: dict[tuple[str, str], dict[str, str]] = {}
        compilers = _compilers(folder)
        others = sorted(path.parent for path in folder.parent.glob(f"*/{CUBINS_FILE}") if path.parent != folder)
        for other in others if len(compilers) == 1 else []:
            if _compilers(other) == compilers:
                self._read(other)
        self._own = self._read(folder)  # last: its own hashes count

    def _read(self, folder: Path) -> set[str]:
        """Read a file; the architectures that it names."""
        archs = set()
        for place, entry in lines(folder / CUBINS_FILE):
            try:
                commit, arch, cubins = entry["commit"], entry["arch"], entry["cubins"]
                if not all(isinstance(text, str) for text in (commit, arch, *cubins.values())):
                    raise TypeError
                known = {_machine_code(name): sha256 for name, sha256 in cubins.items()}
            except (AttributeError, KeyError, TypeError, ValueError):
                raise ValueError(
                    f'{place}: not of the form {{"commit": "hash", "arch": "sm_90", "cubins": '
                    f'{{"kernel dtype flags": "sha256"}}}}: {str(entry)[:200]}'
                ) from None
            self._known.setdefault((commit, arch), {}).update(known)
            archs.add(arch)
        return archs

    def sha256(self, commit: str, arch: str, launch: str) -> str | None:
        """The hash of a launch's machine code on a commit, hexadecimal; None where no run stored it."""
        return self._known.get((commit, arch), {}).get(launch)

    def archs(self) -> list[str]:
        """The architectures that some run compiled for, this machine's first."""
        return sorted({arch for _, arch in self._known}, key=lambda arch: (arch not in self._own, arch))

    def runs(self, commits: Sequence[str], arch: str) -> dict[str, list[tuple[int, str | None]]]:
        """The history of every kernel's machine code: where in `commits`, oldest first, another hash begins, and which.

        None is the hash from where on none is stored. What no commit has is left out.
        """
        found: dict[str, list[tuple[int, str | None]]] = {}
        stored = [self._known.get((commit, arch), {}) for commit in commits]
        for name in sorted({name for hashes in stored for name in hashes}):
            before: str | None = None
            found[name] = []
            for index, hashes in enumerate(stored):
                if hashes.get(name) != before:
                    before = hashes.get(name)
                    found[name].append((index, before))
        return found


@functools.cache
def _machine_code(name: str) -> str:
    """The name of a launch's machine code. Every run of every commit stores the same names."""
    return Launch.parse(name).machine_code


def _compilers(folder: Path) -> set[str]:
    """The versions of nvcc that the runs of a machine noted."""
    return {run["nvcc"] for run in record.read(folder.parent, folder.name) if run.get("nvcc")}
