"""The counters of a launch: by instruction, by source line, and in total."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from .errors import Source
from .findings import Finding
from .transactions import LINE, SECTOR, WORD, active_threads, lines, requests, sectors, served_groups, total, wavefronts
from .values import Value

Array = npt.NDArray[Any]
#: What is said wherever an atomic's numbers stand: on the chip, lanes that share an address or a bank take more turns.
NOT_AS_CHIP = "not counted as the chip does"


@dataclass
class Access:
    """The counters of one memory instruction in a launch.

    Attributes
    ----------
    source : Source
        The instruction.
    space, kind : str
        ``global``, ``shared``, ``local`` or ``constant``; ``load``, ``store`` or ``atomic``.
    width : int
        Bytes a thread.
    requests, sectors, wavefronts : int
        As Nsight Compute counts them, but for atomics (`caveat`); sectors for global memory, wavefronts for shared
        memory, requests for all.
    lines : int
        For global memory: the 128-byte lines of each request, summed over the requests.
    conflict_free : int
        The wavefronts it would take without bank conflicts.
    useful_bytes : int
        Width times active threads.
    """

    source: Source
    space: str
    kind: str
    width: int
    requests: int = 0
    sectors: int = 0
    lines: int = 0
    wavefronts: int = 0
    conflict_free: int = 0
    useful_bytes: int = 0

    @property
    def ideal_sectors(self) -> int:
        """The fewest sectors that hold the same useful bytes."""
        return -(-self.useful_bytes // SECTOR)

    @property
    def ideal_lines(self) -> int:
        """The fewest lines that hold the same useful bytes, and at least one for each request."""
        return max(self.requests, -(-self.useful_bytes // LINE))

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts in excess of those needed without conflicts."""
        return self.wavefronts - self.conflict_free

    @property
    def caveat(self) -> str:
        """Why its numbers are not the chip's: that of an atomic, which is counted like a store; else nothing."""
        return NOT_AS_CHIP if self.kind == "atomic" else ""

    def record(self, address: Value, active: Array, shape: tuple[int, int]) -> None:
        """Count one execution by a chunk.

        Parameters
        ----------
        address : Value
            The byte address of each thread.
        active : ndarray of bool
            The threads that execute it, broadcastable to ``shape``.
        shape : tuple of int
            Blocks and threads of the chunk.
        """
        count = requests(active, shape)
        self.requests += count
        self.useful_bytes += active_threads(active, shape) * self.width
        if self.space == "global":
            self.sectors += total(sectors, address, active, shape, self.width)
            self.lines += total(lines, address, active, shape, self.width)
        elif self.space == "shared":
            self.wavefronts += total(wavefronts, address, active, shape, self.width)
            narrow = self.width <= WORD
            self.conflict_free += count if narrow else total(served_groups, address, active, shape, self.width)


@dataclass
class LaunchCounters:
    """The counters of a launch.

    Attributes
    ----------
    threads : int
        Threads of the grid.
    accesses : list of Access
        By instruction, in the order of the PTX.
    thread_instructions, warp_instructions : int
        PTX instructions executed, by threads and by warps.
    findings : list of Finding
        What the launch did that it should not have, in the order of the PTX.
    printed : list of str
        What the kernel printed, a call each, the first 1000.
    """

    threads: int
    accesses: list[Access] = field(default_factory=list)
    thread_instructions: int = 0
    warp_instructions: int = 0
    findings: list[Finding] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    def _sum(self, name: str, space: str, kind: str) -> int:
        return sum(getattr(a, name) for a in self.accesses if (a.space, a.kind) == (space, kind))

    def totals(self) -> dict[str, int]:
        """Sum up the launch.

        Returns
        -------
        dict of str to int
            For global memory ``load_``, ``store_`` and ``atomic_`` with ``requests``, ``sectors``, ``ideal_sectors``,
            ``lines``, ``ideal_lines`` and ``useful_bytes``; for shared memory the same with ``shared_`` in front, and
            ``wavefronts`` and ``bank_conflicts`` for sectors and lines; ``threads``, ``thread_instructions``,
            ``warp_instructions``. Those of atomics are not counted as the chip does.
        """
        result = {"threads": self.threads}
        for space, prefix, amounts in _TOTALS:
            for kind in ("load", "store", "atomic"):
                result |= {f"{prefix}{kind}_{name}": self._sum(name, space, kind) for name in amounts}
        return result | {
            "thread_instructions": self.thread_instructions,
            "warp_instructions": self.warp_instructions,
        }

    def caveats(self) -> dict[str, str]:
        """Say which numbers are not the chip's.

        Returns
        -------
        dict of str to str
            By kind of access, for those in the launch that have any: ``atomic``.
        """
        return {access.kind: access.caveat for access in self.accesses if access.caveat}

    def by_line(self) -> dict[tuple[str | None, int | None], list[Access]]:
        """Group the accesses by source line.

        Returns
        -------
        dict
            From (file, line) to the accesses there; both None without source lines.
        """
        lines: dict[tuple[str | None, int | None], list[Access]] = {}
        for access in self.accesses:
            lines.setdefault((access.source.file, access.source.line), []).append(access)
        return lines


_TOTALS = (
    ("global", "", ("requests", "sectors", "ideal_sectors", "lines", "ideal_lines", "useful_bytes")),
    ("shared", "shared_", ("requests", "wavefronts", "bank_conflicts", "useful_bytes")),
)
