"""Cost of atomics: wavefronts in shared memory, and aggregation by warp in shared and global memory."""

from typing import NamedTuple

from ..lanes.warps import LANES
from ..ptx.program import Type

#: Values of `AtomicCost.rounds_index`.
_BANKS, _ROUNDS, _WORDS_OF_LOAD = range(3)


class AtomicCost(NamedTuple):
    """Cost of one atomic instruction (measured: 160 kernels of one warp on an H200)."""

    #: Index of the number of rounds among the three that `transactions.count_shared_atomics` returns: counts 1 to 3,
    #: and without conflicts, counts 4 to 6.
    rounds_index: int
    #: Wavefronts per round.
    per_round: int = 1
    #: Wavefronts of a first try, before a CAS loop.
    before: int = 0
    #: True for a CAS loop, which repeats while other warps modify the word; wider than 16 bits, only in shared memory.
    loops: bool = False
    #: Minimum active lanes for warp aggregation by ptxas. 0: never aggregated.
    min_aggregated_lanes: int = 0
    #: Wavefronts of a warp-aggregated request.
    per_aggregated: int = 1

    @property
    def reloads(self) -> bool:
        """True if each round of a loop loads from shared memory first."""
        return self.rounds_index == _ROUNDS


#: Minimum active lanes for warp aggregation by ptxas, if it can prove a uniform address. A key has the operation, its
#: bytes, and True if its result is used. The first number is for a uniform value, the second for a value per lane; 0
#: means never. Operations that are not listed are never aggregated. (Machine code of nvcc 13.0.88 for sm_90, 544
#: kernels; the same for global and shared memory.)
_AGGREGATED_LANES = {
    ("add", 4, False): (1, 1), ("add", 4, True): (1, LANES), ("add", 8, False): (1, 0), ("add", 8, True): (1, 0),
    **{(name, 4, False): (1, 1) for name in ("min", "max", "and", "or", "xor")},
}  # fmt: skip


def find_atomic_cost(
    name: str, kind: Type, *, returns: bool, adds_one: bool, uniform_value: bool = False, uniform_address: bool = False
) -> AtomicCost:
    """Find an atomic's wavefronts in shared memory, and its warp aggregation in shared and global memory.

    ``returns``: the result is used. ``adds_one``: the atomic adds the literal 1. ``uniform_value``,
    ``uniform_address``: ptxas can prove that the value, or the address, is uniform in a warp.

    PTX does not determine the instruction that ptxas chooses. These rules match its choice in the measured kernels.
    ``exch`` and ``cas`` of 64 and 128 bits are single instructions, not CAS loops (sm_75 to sm_120, nvcc 13.0.88; 240
    launches of one warp on an H200).
    """
    can_aggregate = uniform_address and kind.kind in ("u", "s", "b")
    lanes_if_uniform, lanes_if_varying = _AGGREGATED_LANES.get((name, kind.size, returns), (0, 0))
    min_lanes = lanes_if_uniform if uniform_value else lanes_if_varying
    min_aggregated_lanes = min_lanes if can_aggregate else 0
    is_wide_swap = name in ("exch", "cas") and kind.size >= 8
    if kind.size == 2:  # a CAS loop on the 32-bit word
        return AtomicCost(_BANKS, 2, loops=True)
    if kind.name not in ("u32", "s32", "b32") and not is_wide_swap:
        before = 1 if kind.name.endswith("x2") else 0  # a first try: ATOM.E.ADD, by a generic address
        return AtomicCost(_ROUNDS, 2, before, loops=True, min_aggregated_lanes=min_aggregated_lanes, per_aggregated=2)
    if kind.name == "u32" and adds_one and name == "add" and not returns:
        return AtomicCost(_WORDS_OF_LOAD, min_aggregated_lanes=min_aggregated_lanes)
    return AtomicCost(_BANKS, 2 if name == "cas" else 1, min_aggregated_lanes=min_aggregated_lanes)
