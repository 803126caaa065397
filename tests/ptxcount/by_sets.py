"""The oracle of every counting rule: a warp's accesses, counted with Python sets straight from the definitions."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptxcount.counting.counters import Access
from ptxcount.lanes.symbolic_values import Value, dense
from ptxcount.lanes.warps import Array

#: Addresses of the lanes of a warp; None for an inactive or missing lane.
Lanes = Sequence["int | None"]


def count_global(lanes: Lanes, width: int) -> list[int]:
    """Return the touched sectors and 128-byte lines, and the fewest sectors and lines that hold as many bytes."""
    requested_bytes = {byte for a in lanes if a is not None for byte in range(a, a + width)}
    touched = [len({byte // unit for byte in requested_bytes}) for unit in (32, 128)]
    return [*touched, *(-(-len(requested_bytes) // unit) for unit in (32, 128))]


def _count_waves(lanes: Lanes, width: int, group_size: int) -> list[int]:
    waves = groups = 0
    for first in range(0, 32, group_size):
        group = [a for a in lanes[first : first + group_size] if a is not None]
        banks: dict[int, set[int]] = defaultdict(set)
        for a in group:
            for byte in range(a, a + width):
                banks[byte // 4 % 32].add(byte // 4)
        waves += max(map(len, banks.values()), default=0)
        groups += bool(group)
    return [waves, groups]


def count_store_wavefronts(lanes: Lanes, width: int) -> list[int]:
    """Return the wavefronts of a store to shared memory, and the fewest without bank conflicts.

    A wavefront serves lanes that access 128 bytes together: 32 lanes for 4 bytes each, 8 lanes for 16.
    """
    return _count_waves(lanes, width, 128 // max(width, 4))


def count_load_wavefronts(lanes: Lanes, width: int) -> list[int]:
    """Return the wavefronts of a load from shared memory, and the fewest without bank conflicts.

    A load is like a store. But a wavefront of an 8- or 16-byte load may serve twice as many lanes, if lanes n and n ^ 1
    share addresses, or lanes n and n ^ 2.
    """
    for lane_distance in (1, 2) if width > 4 else ():
        pairs = [(lanes[n], lanes[n ^ lane_distance]) for n in range(32)]
        if all(a == b for a, b in pairs if a is not None and b is not None):
            return min(
                count_store_wavefronts(lanes, width),
                _count_waves(lanes, width, 2 * 128 // width),
                key=lambda counts: counts[0],
            )
    return count_store_wavefronts(lanes, width)


def count_local_sectors(lanes: Lanes, width: int) -> list[int]:
    """Count sectors of local memory: distinct pairs of a word and a group of eight lanes."""
    words = max(width // 4, 1)
    return [sum(len({(a // 4 + k, n // 8) for n, a in enumerate(lanes) if a is not None}) for k in range(words))]


def count_constant_addresses(lanes: Lanes, width: int) -> list[int]:
    """Count distinct addresses; a 16-byte load counts each of them twice."""
    return [len({(a, half) for a in lanes if a is not None for half in range(max(width // 8, 1))})]


def _most(keys: Sequence[Any]) -> int:
    return max(Counter(keys).values(), default=0)


def count_global_atomics(lanes: Lanes, width: int) -> list[int]:
    """Return the most lanes on one address, the sum of that maximum over sectors, and further counts.

    Further counts are those of `count_global` without its first: lines, ideal sectors, ideal lines.
    """
    addresses = [a for a in lanes if a is not None]
    sectors = {a // 32: [b for b in addresses if b // 32 == a // 32] for a in addresses}
    return [_most(addresses), sum(map(_most, sectors.values())), *count_global(lanes, width)[1:]]


def count_shared_atomics(lanes: Lanes, width: int) -> list[int]:
    """Return the most lanes on one address, then three costs, then the lowest value of each cost.

    Costs: most lanes on one bank, summed over groups; groups of lanes over all rounds of a loop; wavefronts of a store.
    """
    addresses = [a for a in lanes if a is not None]
    stored, groups = count_store_wavefronts(lanes, width)
    fewest = math.ceil(len(addresses) * width / 128)
    rounds = sum(count_store_wavefronts(pending, width)[1] for pending in _list_rounds(lanes, width))
    size = 128 // max(width, 4)
    served = [[a // 4 % 32 for a in lanes[k : k + size] if a is not None] for k in range(0, 32, size)]
    return [_most(addresses), sum(map(_most, served)), rounds, stored, groups, groups, fewest]


def _list_rounds(lanes: Lanes, width: int) -> list[Lanes]:
    """List the lanes that begin each round of a retry loop.

    A round completes the first lane of each bank in each group, unless an earlier group changes its word.
    """
    rounds, pending, size = list[Lanes](), [*lanes], 128 // max(width, 4)
    while any(a is not None for a in pending):
        rounds.append([*pending])
        changed = set[int | None]()
        for start in range(0, 32, size):
            group = [(n, a) for n, a in enumerate(rounds[-1]) if a is not None and n // size == start // size]
            first = {a // 4 % 32: (n, a) for n, a in reversed(group)}.values()
            for n, a in first:
                pending[n] = a if a in changed else None
            changed |= {a for _, a in first}
    return rounds


def count_loop_loads(lanes: Lanes, width: int) -> list[int]:
    """Return the loads of a loop after its first, and wavefronts of all loads with and without bank conflicts."""
    rounds = _list_rounds(lanes, width)
    counts = [count_load_wavefronts(pending, width) for pending in rounds]
    return [len(rounds) - 1, *map(sum, zip(*counts, strict=True))]


_PATTERNS = ("sectors", "lines", "ideal_sectors", "ideal_lines")
_SERVED = ("wavefronts", "conflict_free")
#: Space, or space and kind, of an access -> counting rule and names of its counts.
_COUNTED: dict[str, tuple[Callable[[Lanes, int], list[int]], tuple[str, ...]]] = {
    "global": (count_global, _PATTERNS), "global atomic": (count_global_atomics, ("together", *_PATTERNS)),
    "shared": (count_store_wavefronts, _SERVED), "shared load": (count_load_wavefronts, _SERVED),
    "local": (count_local_sectors, ("sectors",)), "constant": (count_constant_addresses, ("addresses",)),
}  # fmt: skip
#: Key of an access -> counter -> count with sets. Clear it before each launch.
COUNTS_BY_ACCESS: dict[tuple[int, str, str], Counter[str]] = {}


def _find_key(access: Access) -> tuple[int, str, str]:
    """Return the instruction of the PTX, which copies of it share, with the space and the kind."""
    return id(access.source), access.space, access.kind


class Watched(Access):
    """An access that is also counted warp by warp with sets, into `COUNTS_BY_ACCESS`."""

    def record(
        self, address: Value, active: Array, shape: tuple[int, int], turns: Any = None, again: bool = False
    ) -> None:
        """Record as `Access.record`, and count the same lanes with sets."""
        super().record(address, active, shape, turns, again)
        where, mask = dense(address), np.broadcast_to(active, shape)
        where = np.broadcast_to(where.view(f"i{where.itemsize}"), shape)
        counters = COUNTS_BY_ACCESS.setdefault(_find_key(self), Counter())
        for row, is_active in zip(where.tolist(), mask.tolist(), strict=True):
            threads = [a if on else None for a, on in zip(row, is_active, strict=True)]
            for first in range(0, shape[1], 32):
                lanes = threads[first : first + 32]
                lanes += [None] * (32 - len(lanes))
                lane_count = 32 - lanes.count(None)
                if lane_count:
                    bytes_per_request = {"local": 4, "constant": 8}.get(self.space, 32)  # of a lane
                    counters["requests"] += max(self.width // bytes_per_request, 1)
                    counters["useful_bytes"] += 0 if again else lane_count * self.width
                    is_aggregated = turns is not None and 0 < turns.min_aggregated_lanes <= lane_count
                    counters.update(self._counts(lanes, turns, is_aggregated))

    def _counts(self, lanes: Lanes, turns: Any, is_aggregated: bool) -> dict[str, int]:
        """Count an access of a warp. `turns` is the `AtomicCost` of an atomic, or None."""
        if turns is not None and self.kind == "load":
            names = ("requests", "wavefronts", "conflict_free")
            return dict(zip(names, (0, 1, 1) if is_aggregated else count_loop_loads(lanes, self.width), strict=True))
        loops = {} if turns is None else {"loops": int(turns.loops)}
        if turns is not None and self.space == "shared":
            atomic_counts = count_shared_atomics(lanes, self.width)
            costs = atomic_counts[1:4], atomic_counts[4:]
            wavefronts, fewest = (choices[turns.rounds_index] * turns.per_round for choices in costs)
            if is_aggregated:
                wavefronts = fewest = turns.per_aggregated
            return loops | {"together": atomic_counts[0], "wavefronts": wavefronts, "conflict_free": fewest}
        counted = _COUNTED.get(f"{self.space} {self.kind}") or _COUNTED.get(self.space)
        counts = dict(zip(counted[1], counted[0](lanes, self.width), strict=True)) if counted else {}
        return counts | loops | ({"sectors": 1} if is_aggregated else {})


def differences(accesses: Sequence[Access]) -> list[str]:
    """List the counters in which `Watched` accesses differ from the count with sets."""
    mismatches = []
    for access in accesses:
        expected = COUNTS_BY_ACCESS[_find_key(access)]
        place = f"{access.source}: {access.space} {access.kind} of {access.width} bytes"
        mismatches += [f"{place}: {name} {getattr(access, name)}, not {count}"
                       for name, count in expected.items() if getattr(access, name) != count]  # fmt: skip
    return mismatches
