"""A slow count of one warp's accesses by Python's sets, straight from the definitions: the oracle of every rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxcount.counters import Access
from ptxcount.values import Value, dense

Array = npt.NDArray[Any]
#: Addresses of the lanes of a warp; None for one that is off, or that there is not.
Lanes = Sequence["int | None"]


def global_counts(lanes: Lanes, width: int) -> list[int]:
    """Sectors and lines, and the fewest that hold what is asked for."""
    asked = {byte for a in lanes if a is not None for byte in range(a, a + width)}
    touched = [len({byte // unit for byte in asked}) for unit in (32, 128)]
    return [*touched, *(-(-len(asked) // unit) for unit in (32, 128))]


def _served(lanes: Lanes, width: int, together: int) -> list[int]:
    waves = groups = 0
    for first in range(0, 32, together):
        some = [a for a in lanes[first : first + together] if a is not None]
        banks: dict[int, set[int]] = defaultdict(set)
        for a in some:
            for byte in range(a, a + width):
                banks[byte // 4 % 32].add(byte // 4)
        waves += max(map(len, banks.values()), default=0)
        groups += bool(some)
    return [waves, groups]


def stores(lanes: Lanes, width: int) -> list[int]:
    """Wavefronts of shared memory, and those without conflicts: groups of 32 lanes, or 16 of 8 bytes, 8 of 16."""
    return _served(lanes, width, 128 // max(width, 4))


def loads(lanes: Lanes, width: int) -> list[int]:
    """As `stores`; of wide loads whose neighbours, or next but one, agree, twice as many lanes if that helps."""
    for other in (1, 2) if width > 4 else ():
        pairs = [(lanes[n], lanes[n ^ other]) for n in range(32)]
        if all(a == b for a, b in pairs if a is not None and b is not None):
            return min(stores(lanes, width), _served(lanes, width, 2 * 128 // width), key=lambda found: found[0])
    return stores(lanes, width)


def local(lanes: Lanes, width: int) -> list[int]:
    """Sectors of local memory: of each word the different pairs of its place and a group of eight lanes."""
    words = max(width // 4, 1)
    return [sum(len({(a // 4 + k, n // 8) for n, a in enumerate(lanes) if a is not None}) for k in range(words))]


def _most(keys: Sequence[Any]) -> int:
    return max(Counter(keys).values(), default=0)


def atomics(lanes: Lanes, width: int) -> dict[str, int]:
    """Most lanes on an address and in a bank, those on an address summed over sectors, and turns of 64-bit loops."""
    on = [a for a in lanes if a is not None]
    sectors = {a // 32: [b for b in on if b // 32 == a // 32] for a in on}
    most = _most(on)
    return {
        "lanes_of_address": most,
        "lanes_of_bank": _most([a // 4 % 32 for a in on]),
        "lane_sectors": sum(map(_most, sectors.values())),
        "wide_turns": most * (3 if most == len(on) else 4),
    }


#: What was counted of each access, as its counters are called.
HELD: dict[int, Counter[str]] = {}


class Watched(Access):
    """An access that is also counted warp by warp by sets, into `HELD`."""

    def record(self, address: Value, active: Array, shape: tuple[int, int], turns: Any = None) -> None:
        """As `Access.record`."""
        super().record(address, active, shape, turns)
        where, on = dense(address), np.broadcast_to(active, shape)
        where = np.broadcast_to(where.view(f"i{where.itemsize}"), shape)
        held = HELD.setdefault(id(self), Counter())
        seen = turns is not None and turns.aggregates and isinstance(address, np.ndarray) and address.shape[1] == 1
        for block in range(shape[0]):
            for first in range(0, shape[1], 32):
                lanes = [int(where[block, t]) if t < shape[1] and on[block, t] else None
                         for t in range(first, first + 32)]  # fmt: skip
                asked = sum(lane is not None for lane in lanes)
                if asked:
                    held["requests"] += max(self.width // 4, 1) if self.space == "local" else 1
                    held["useful_bytes"] += asked * self.width
                    held.update(
                        self._counts(lanes, turns) | ({"sectors": 1} if seen and self.space == "global" else {})
                    )

    def _counts(self, lanes: Lanes, turns: Any) -> dict[str, int]:
        names: dict[str, list[str]] = {
            "global": ["sectors", "lines", "ideal_sectors", "ideal_lines"], "shared": ["wavefronts", "conflict_free"],
            "local": ["sectors"],
        }  # fmt: skip
        rules: dict[str, Any] = {"global": global_counts, "local": local, "shared": loads}
        rule = stores if self.space == "shared" and self.kind != "load" else rules.get(self.space)
        counts = dict(zip(names.get(self.space, []), rule(lanes, self.width) if rule else [], strict=True))
        if turns is not None:
            each = atomics(lanes, self.width)
            counts["together"] = each["lanes_of_address"]
            if self.space == "global":
                counts["sectors"] = each["lane_sectors"]
            else:
                counts = {"together": counts["together"]}
        return counts


def differences(accesses: Sequence[Access]) -> list[str]:
    """What `Watched` accesses have counted otherwise than sets."""
    found = []
    for one in accesses:
        held = HELD[id(one)]
        if held.pop("together", 0) != one.together:
            found.append(f"{one.source}: together {one.together}")
        found += [f"{one.source}: {one.space} {one.kind} of {one.width} bytes: {name} {getattr(one, name)}, not {count}"
                  for name, count in held.items() if getattr(one, name) != count]  # fmt: skip
    return found
