"""The counters of a launch: by instruction, by source line, and in total."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from ..util.findings import Finding
from .access import Access

__all__ = ["AMOUNTS", "KINDS", "LOCAL_CAVEATS", "Access", "Amounts", "LaunchCounters"]
#: Caveats of local memory, by stack frame size in bytes; None for an unknown size.
LOCAL_CAVEATS = {None: "ptxas may keep it in registers", 0: "ptxas keeps all of it in registers"}
KINDS = ("load", "store", "atomic")
#: Counts that `Amounts` sums over accesses.
AMOUNTS = (
    "requests", "sectors", "ideal_sectors", "lines", "ideal_lines", "wavefronts", "conflict_free", "bank_conflicts",
    "useful_bytes", "together", "aggregated", "addresses",
)  # fmt: skip


@dataclass
class Amounts:
    """The counters of several accesses: sums, and means per request.

    Attributes
    ----------
    accesses : list of Access
        Accesses of one kind to one space. The attributes ``requests``, ``sectors``, ``lines``, ``wavefronts``,
        ``conflict_free``, ``ideal_sectors``, ``ideal_lines``, ``bank_conflicts``, ``useful_bytes``, ``together``,
        ``aggregated`` and ``addresses`` are sums over the accesses. With the suffix ``_per_request``, as in
        ``sectors_per_request``, they are means over the requests; 0 without requests.
    """

    accesses: list[Access]

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_per_request"):
            amount, requests = getattr(self, name.removesuffix("_per_request")), self.requests
            return amount / requests if requests else 0.0
        if name not in AMOUNTS:
            allowed = f"allowed are {', '.join(AMOUNTS)}, also with _per_request"
            raise AttributeError(f"{type(self).__name__} has no {name!r}; {allowed}")
        return sum(getattr(access, name) for access in self.accesses)


@dataclass
class LaunchCounters:
    """The counters of a launch.

    ``loads``, ``stores`` and ``atomics`` are the `Amounts` of the accesses to global memory, as in
    ``counters.loads.sectors_per_request``. Those of shared memory are ``shared_loads``, ``shared_stores`` and
    ``shared_atomics``. The prefixes ``local_``, ``texture_``, ``surface_``, ``bulk_`` and ``cluster_`` are also known.

    Attributes
    ----------
    threads : int
        Threads of the grid.
    accesses : list of Access
        One per instruction, state space and kind, in PTX order. ``cp.async``, for example, has two: it loads from
        global memory, and copies to shared memory.
    thread_instructions, warp_instructions : int
        PTX instructions executed, by threads and by warps.
    findings : list of Finding
        The findings, in PTX order; ``lost-alignment`` and ``unknown-limits`` are last.
    arrays : list of tuple
        Address, size in bytes and name of each array and variable during the launch; in shared memory, the offset.
    distinct_sectors : tuple of int or None
        The number of distinct sectors of global memory that the launch read, and that it wrote; None if not counted.
        With cold caches, each such sector is transferred at least once.
    fetched_sectors : int or None
        Minimum sectors read from DRAM, if an L2 miss fetches 64 bytes, the default of
        ``cudaLimitMaxL2FetchGranularity``, or 128 by ``.L2::128B`` or ``.L2::256B``. None if not counted.
    merged : dict of str to tuple
        For ``load`` and ``store``: the requests and wavefronts of shared memory after ptxas merges accesses. A kind
        without accesses that can merge is missing.
    stack_frame : int or None
        Bytes of local memory per thread, from ptxas; None if ptxas was not run, as by `count`, or failed.
    """

    threads: int
    accesses: list[Access] = field(default_factory=list)
    thread_instructions: int = 0
    warp_instructions: int = 0
    findings: list[Finding] = field(default_factory=list)
    arrays: list[tuple[int, int, str]] = field(default_factory=list)
    distinct_sectors: tuple[int, int] | None = None
    fetched_sectors: int | None = None
    merged: dict[str, tuple[int, int]] = field(default_factory=dict)
    stack_frame: int | None = None

    def __getattr__(self, name: str) -> Amounts:
        kinds = {f"{prefix}{kind}s": (space, kind) for space, prefix, _ in _TOTALS for kind in KINDS}
        if name not in kinds:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; accesses are by {', '.join(kinds)}")
        return Amounts([access for access in self.accesses if (access.space, access.kind) == kinds[name]])

    def _sum_accesses(self, name: str, space: str, kind: str) -> int:
        return sum(getattr(access, name) for access in self.accesses if (access.space, access.kind) == (space, kind))

    def totals(self) -> dict[str, int]:
        """Sum up the launch.

        Returns
        -------
        dict of str to int
            Always ``threads``, ``thread_instructions`` and ``warp_instructions``. Other keys are a prefix and a count,
            such as ``load_sectors``.

            - Global memory: ``load_``, ``store_`` and ``atomic_`` with ``requests``, ``sectors``, ``ideal_sectors``,
              ``lines``, ``ideal_lines`` and ``useful_bytes``.
            - Shared memory: ``shared_load_``, ``shared_store_`` and ``shared_atomic_`` with ``requests``,
              ``wavefronts``, ``bank_conflicts`` and ``useful_bytes``.
            - If present, ``local_``, ``texture_``, ``surface_`` and ``bulk_``, each with the kind, as in
              ``local_load_``: ``requests``, ``sectors`` and ``useful_bytes``.
            - If present, distributed shared memory, as in ``cluster_load_``: the same and ``ideal_sectors``.
            - If present, constant memory: ``constant_requests`` and ``constant_addresses``.
            - Atomics also have ``together``: the maximum number of lanes on one address, summed over the requests.
        """
        result = {"threads": self.threads}
        present = {(access.space, access.kind) for access in self.accesses}
        for space, prefix, amounts in _TOTALS:
            for kind in KINDS:
                if space in ("global", "shared") or (space, kind) in present:
                    names = (*amounts, "together") if kind == "atomic" else amounts
                    result |= {f"{prefix}{kind}_{name}": self._sum_accesses(name, space, kind) for name in names}
        if ("constant", "load") in present:
            for name in ("requests", "addresses"):
                result[f"constant_{name}"] = self._sum_accesses(name, "constant", "load")
        return result | {"thread_instructions": self.thread_instructions, "warp_instructions": self.warp_instructions}

    @property
    def polls(self) -> int:
        """Number of requests by which spin-waits repeat a load or an atomic. No total includes them."""
        return sum(access.polls for access in self.accesses)

    def caveats(self) -> dict[str, str]:
        """Describe the costs that the counts leave out, and how much local memory ptxas really uses.

        Returns
        -------
        dict of str to str
            The caveat by space and kind, such as ``shared atomic``. Accesses without a caveat are missing.
        """
        notes: defaultdict[str, list[str]] = defaultdict(list)
        for access in self.accesses:
            texts = notes[f"{access.space} {access.kind}"]
            if access.caveat not in ("", *texts):
                texts.append(access.caveat)
        caveats = {kind: "; ".join(texts) for kind, texts in notes.items() if texts}
        text = LOCAL_CAVEATS.get(self.stack_frame, f"ptxas keeps {self.stack_frame} bytes per thread there")
        return caveats | {f"local {access.kind}": text for access in self.accesses if access.space == "local"}

    def machine_code_accesses(self) -> list[Access]:
        """Return the accesses that remain in machine code: without local memory if ptxas reports a stack frame of 0."""
        return [access for access in self.accesses if access.space != "local" or self.stack_frame != 0]

    def by_line(self) -> dict[tuple[str | None, int | None], list[Access]]:
        """Group the accesses by source line.

        Returns
        -------
        dict
            The accesses by (file, line); file and line are None without source lines.
        """
        lines: dict[tuple[str | None, int | None], list[Access]] = {}
        for access in self.accesses:
            lines.setdefault((access.source.file, access.source.line), []).append(access)
        return lines


#: State space, prefix of its keys in `LaunchCounters.totals`, and the counts of its loads, stores and atomics.
_TOTALS = (
    ("global", "", ("requests", "sectors", "ideal_sectors", "lines", "ideal_lines", "useful_bytes")),
    ("shared", "shared_", ("requests", "wavefronts", "bank_conflicts", "useful_bytes")),
    ("cluster", "cluster_", ("requests", "sectors", "ideal_sectors", "useful_bytes")),
    *(
        (space, f"{space}_", ("requests", "sectors", "useful_bytes"))
        for space in ("local", "texture", "surface", "bulk")
    ),
)
