"""State spaces of instructions and of generic addresses (PTX ISA, "State Spaces")."""

from collections.abc import Callable, Iterator

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import CALL_SPACE, Instruction, Operand, Type
from .operands import Reader, make_address_reader, split_name, unsupported

SPACES = {
    "global": "global", "const": "constant", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared",
    "local": "local", "param": "parameter", "param::entry": "parameter", "param::func": "local", CALL_SPACE: "local",
}  # fmt: skip
#: First bit of the part of a generic address that selects its state space in `WINDOWS`.
WINDOW_BITS = 56
WINDOWS = ("global", "shared", "local", "constant", "parameter")
#: Cache and ordering modifiers. They do not change results, requests or sectors. Those of `FETCHED` change
#: `fetched_sectors`, the reads from DRAM. Modifiers of order change race checks.
HINTS = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire", "release", "acq_rel",
    "sc", "cta", "cluster", "gpu", "sys", "mmio",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
#: Sectors that an L2 miss of a load fetches, by prefetch modifier, for any fetch granularity of the context (measured
#: on an H100 and an H200). ``L2::256B`` fetched 7.76 of 8 sectors on average: only 4 are guaranteed.
FETCHED = {"L2::128B": 4, "L2::256B": 4}
#: Kinds of types without a size in memory: predicates and unknown types.
_UNADDRESSABLE = "p?"
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def window_base(space: str) -> int:
    """Return the base of a state space in generic addresses, by the space's name in PTX."""
    return WINDOWS.index(SPACES[space]) << WINDOW_BITS


def find_space(instruction: Instruction) -> str | None:
    """Find the state space that an instruction names; None for generic addresses."""
    return next((SPACES[name] for name in instruction.modifiers if name in SPACES), None)


def decode_access(
    instruction: Instruction, *allowed: str, allows_others: bool = False
) -> tuple[str | None, int, Type, list[str]]:
    """Return an access's state space (None: generic), elements per thread, type, and other modifiers.

    Example: ``ld.relaxed.shared.v2.f32`` -> ``"shared", 2, f32, []``: `HINTS` are dropped. ``allowed`` are modifiers
    that the caller handles. Raises `UnsupportedInstructionError` for other modifiers, unless ``allows_others``. Raises
    also unless there is one type, at most one space and one vector, and at most 32 bytes. If the access may be to
    shared memory, add the size of an element, at most 8, to ``instruction.units``.
    """
    names, types = split_name(instruction)
    spaces = [SPACES[name] for name in names if name in SPACES]
    vectors = [_VECTORS[name] for name in names if name in _VECTORS]
    extra = [name for name in names if not (name in HINTS or name in SPACES or name in _VECTORS or name in allowed)]
    unsupported_form = len(types) != 1 or len(spaces) > 1 or len(vectors) > 1 or types[0].kind in _UNADDRESSABLE
    if unsupported_form or (extra and not allows_others):
        needs = "it needs one type, and at most one space and vector"
        why = f".{extra[0]} is unknown here" if extra and not allows_others else needs
        raise unsupported(instruction, why)
    count = vectors[0] if vectors else 1
    if count * types[0].size > 32:
        raise unsupported(instruction, "it accesses more than 32 bytes per thread")
    space = spaces[0] if spaces else None
    if space in (None, "shared"):
        instruction.units.add(min(types[0].size, 8))
    return space, count, types[0], extra


def find_fetch_options(instruction: Instruction) -> dict[str, int]:
    """Return the option of `ArrayMemory.load` for a prefetch modifier: ``{"fetch": 4}`` (sectors), or no option."""
    sectors = [FETCHED[name] for name in instruction.modifiers if name in FETCHED]
    return {"fetch": sectors[0]} if sectors else {}


def make_resolver(space: str | None, read: Reader) -> Callable[[Chunk], tuple[str, Value]]:
    """Return a function that returns the state space of the active threads, and their addresses within it.

    The returned function raises `UnsupportedInstructionError` if the addresses are in different state spaces.
    """
    if space is not None:
        return lambda chunk: (space, read(chunk))

    def resolve_generic(chunk: Chunk) -> tuple[str, Value]:
        resolved_space, place, mask = next(_iter_spaces(chunk, read(chunk)))
        if (mask != chunk.active).any():
            raise unsupported(chunk.instruction, "its threads have addresses in different state spaces")
        return resolved_space, place

    return resolve_generic


def make_shared_reader(instruction: Instruction, operand: Operand) -> Reader:
    """Return a reader of an operand's shared addresses, which raises `UnsupportedInstructionError` for other spaces."""
    space = find_space(instruction)
    resolve = make_resolver(space, make_address_reader(instruction, operand, space))

    def read_place(chunk: Chunk) -> Value:
        resolved_space, address = resolve(chunk)
        if resolved_space != "shared":
            raise unsupported(instruction, f"it does not exist for {resolved_space} memory")
        return address

    return read_place


def _iter_spaces(chunk: Chunk, value: Value) -> Iterator[tuple[str, Value, Array]]:
    """Yield each state space of generic addresses, the addresses within it, and the mask of threads that use it."""
    addresses, active = spread(dense(value).view(np.int64), chunk.shape), spread(chunk.active, chunk.shape)
    windows = addresses >> WINDOW_BITS
    valid_windows = np.where((windows >= 0) & (windows < len(WINDOWS)), windows, 0)
    used_windows = valid_windows[active]
    if (used_windows == used_windows[0]).all():
        masks = {int(used_windows[0]): chunk.active}
    else:
        masks = {window: active & (valid_windows == window) for window in np.unique(used_windows).tolist()}
    for window, mask in masks.items():
        yield WINDOWS[window], addresses - (window << WINDOW_BITS) if window else value, mask


def dispatch_by_space(
    space: str | None, read: Reader, access: Callable[[Chunk, str, Value], list[Array]]
) -> Callable[[Chunk], list[Array]]:
    """Return a function that calls ``access`` for a state space, or for each state space of generic addresses.

    The function returns the values from ``access``; with several spaces, each thread's value is from its own space.
    """
    if space is not None:
        return lambda chunk: access(chunk, space, read(chunk))

    def access_generic(chunk: Chunk) -> list[Array]:
        active, results = chunk.active, None
        for resolved_space, place, mask in [*_iter_spaces(chunk, read(chunk))]:
            chunk.active = mask
            loaded = access(chunk, resolved_space, place)
            if results:
                loaded = [np.where(mask, new, old) for new, old in zip(loaded, results, strict=True)]
            results = loaded
        chunk.active = active
        return results or []

    return access_generic
