"""State spaces of instructions and of generic addresses (PTX ISA, "State Spaces")."""

from collections.abc import Callable, Iterator

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import CALL_SPACE, Instruction, Operand, Type, format_operand
from .operands import Reader, find_modifier, make_address_reader, split_name, unsupported

SPACES = {
    "global": "global", "const": "constant", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared",
    "local": "local", "param": "parameter", "param::entry": "parameter", "param::func": "local", CALL_SPACE: "local",
}  # fmt: skip
#: First bit of the part of a generic address that selects its state space in `WINDOWS`.
WINDOW_BITS = 56
WINDOWS = ("global", "shared", "local", "constant", "parameter")
#: Cache and ordering modifiers. They do not change the cost of an execution. Modifiers of order change race checks, and
#: some keep ptxas from removing a repeated load. Those of `FETCHED` change `fetched_sectors`, the reads from DRAM.
CACHE_AND_ORDER = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire", "release", "acq_rel",
    "sc", "cta", "cluster", "gpu", "sys", "mmio",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
#: Sectors that an L2 miss of a load fetches, by prefetch modifier, for any fetch granularity of the context (measured
#: on an H100 and an H200). ``L2::256B`` fetched 7.76 of 8 sectors on average: only 4 are guaranteed.
FETCHED = {"L2::128B": 4, "L2::256B": 4}
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def window_base(space: str) -> int:
    """Return the base of a state space in generic addresses, by the space's name in PTX."""
    return WINDOWS.index(SPACES[space]) << WINDOW_BITS


def find_space(instruction: Instruction) -> str | None:
    """Find the state space that an instruction names, None for generic addresses; raise if it names several."""
    name = find_modifier(instruction, SPACES)
    return SPACES[name] if name else None


def decode_access(
    instruction: Instruction, *allowed: str, allows_others: bool = False
) -> tuple[str | None, int, Type, list[str]]:
    """Return an access's state space (None: generic), elements per thread, type, and further modifiers.

    Example: ``atom.relaxed.shared.add.f32`` -> ``"shared", 1, f32, ["add"]``. Further modifiers are those that
    name no cache, order, space or vector, and are not ``allowed``. Raises `UnsupportedInstructionError` for predicates,
    for more than 32 bytes, for two spaces or vectors, and for further modifiers unless ``allows_others``.

    As a side effect, an access that may be to shared memory adds the element size, at most 8, to
    ``instruction.units``: accesses are checked in units of the smallest size.
    """
    names, (kind,) = split_name(instruction, 1)
    known = {*CACHE_AND_ORDER, *SPACES, *_VECTORS, *allowed}
    extra = [name for name in names if name not in known]
    if extra and not allows_others:
        known_form = f"the form is {instruction.opcode}{{.hints}}{{.space}}{{.vector}}.type"
        raise unsupported(instruction, f"the modifier .{extra[0]} is not allowed; {known_form}")
    space, vector = find_space(instruction), find_modifier(instruction, _VECTORS)
    if kind.kind == "pred":
        raise unsupported(instruction, "a .pred cannot be in memory; load or store a number")
    count = _VECTORS[vector] if vector else 1
    if count * kind.size > 32:
        raise unsupported(instruction, f"it accesses {count * kind.size} bytes per thread; at most 32 are allowed")
    if space in (None, "shared"):
        instruction.units.add(min(kind.size, 8))
    return space, count, kind, extra


def find_fetch_options(instruction: Instruction) -> dict[str, int]:
    """Return ``{"fetch": 4}``, the sectors of an L2 miss, for a modifier in `FETCHED`; else ``{}``."""
    name = find_modifier(instruction, FETCHED)
    return {"fetch": FETCHED[name]} if name else {}


def make_resolver(space: str | None, read: Reader) -> Callable[[Chunk], tuple[str, Value]]:
    """Return a function that finds the one state space of the active threads, and their addresses within it.

    ``space`` is the space that the instruction names, or None for generic addresses. The returned function raises
    `UnsupportedInstructionError` if the addresses are in several state spaces.
    """
    if space is not None:
        return lambda chunk: (space, read(chunk))

    def resolve_generic(chunk: Chunk) -> tuple[str, Value]:
        (resolved_space, place, _), *others = _iter_spaces(chunk, read(chunk))
        if others:
            spaces = " and ".join([resolved_space, *(other for other, _, _ in others)])
            problem = f"its threads access {spaces} memory by generic addresses"
            raise unsupported(chunk.instruction, f"{problem}; ptxcount supports one state space at a time")
        return resolved_space, place

    return resolve_generic


def make_shared_reader(instruction: Instruction, operand: Operand) -> Reader:
    """Return a reader of an operand's shared addresses; it raises `UnsupportedInstructionError` for other spaces."""
    space = find_space(instruction)
    resolve = make_resolver(space, make_address_reader(instruction, operand, space))

    def read_place(chunk: Chunk) -> Value:
        resolved_space, address = resolve(chunk)
        if resolved_space != "shared":
            problem = f"{format_operand(operand)} is in {resolved_space} memory, not shared memory"
            raise unsupported(instruction, problem)
        return address

    return read_place


def _iter_spaces(chunk: Chunk, value: Value) -> Iterator[tuple[str, Value, Array]]:
    """Yield each state space of the active threads' addresses, the addresses within it, and the mask of its threads."""
    addresses, active = spread(dense(value).view(np.int64), chunk.shape), spread(chunk.active, chunk.shape)
    windows = addresses >> WINDOW_BITS
    valid_windows = np.where((windows >= 0) & (windows < len(WINDOWS)), windows, 0)
    used_windows = valid_windows[active]
    if (used_windows == used_windows[0]).all():
        masks = {int(used_windows[0]): chunk.active}
    else:
        masks = {window: active & (valid_windows == window) for window in np.unique(used_windows).tolist()}
    for window, mask in masks.items():
        place = addresses - (window << WINDOW_BITS) if window else value  # global addresses are generic addresses
        yield WINDOWS[window], place, mask


def dispatch_by_space(
    space: str | None, read: Reader, access: Callable[[Chunk, str, Value], list[Array]]
) -> Callable[[Chunk], list[Array]]:
    """Return a function that calls ``access`` once per state space, and gives each thread the value of its own space.

    ``space`` is the space that the instruction names, or None for generic addresses.
    """
    if space is not None:
        return lambda chunk: access(chunk, space, read(chunk))

    def access_generic(chunk: Chunk) -> list[Array]:
        active, results = chunk.active, None
        for resolved_space, place, mask in [*_iter_spaces(chunk, read(chunk))]:  # a list, as the loop sets chunk.active
            chunk.active = mask
            loaded = access(chunk, resolved_space, place)
            if results:
                loaded = [np.where(mask, new, old) for new, old in zip(loaded, results, strict=True)]
            results = loaded
        chunk.active = active
        return results or []

    return access_generic
