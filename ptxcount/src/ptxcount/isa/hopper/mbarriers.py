"""``mbarrier`` objects in shared memory, as 64-bit words (PTX ISA, "Asynchronous Barriers: mbarrier").

A word contains, from its lowest bit on, the pending arrivals, the expected arrivals of each phase, the pending bytes
(tx-count), and the parity of the phase. The opaque state of a phase in PTX is the old word.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lanes.symbolic_values import Value, dense
from ...lanes.warps import Array, spread
from ...machine.address_map import Report
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Address, Instruction, Operand, Register
from ...util.grammar import count_noun
from ..atomic_operations import AtomicOperation, apply_operation
from ..opcode_registry import Step, binds, make_step, op
from ..operands import Reader, expect_count, join_modifiers, make_address_reader, unsupported
from ..single_threads import iter_threads
from ..spaces import make_shared_reader

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
#: Bits of each field, from bit 0: pending arrivals and expected arrivals, then pending bytes. Bit 63 is the parity.
_COUNT, _BYTES = 20, 21
_MAX_COUNT = (1 << _COUNT) - 1
_PHASE = np.uint64(63)
_ONE = np.ones((1, 1), np.uint32)
#: Weight of a poll towards the spin limit: see `Schedule`.
_POLL = 100


def _extract_field(word: Array, start: int, bits: int) -> Array:
    return np.asarray((word >> np.uint64(start)).astype(np.int64) & ((1 << bits) - 1))


def _update_word(
    word: Array, *, arrivals: Any = 0, dropped: Any = 0, expected_bytes: Any = 0, arrived_bytes: Any = 0
) -> Array:
    counts = (arrivals, dropped, expected_bytes, arrived_bytes)
    arrivals, dropped, expected_bytes, arrived_bytes = (np.asarray(count).astype(np.int64) for count in counts)
    pending, expected = _extract_field(word, 0, _COUNT) - arrivals, _extract_field(word, _COUNT, _COUNT) - dropped
    pending_bytes = (_extract_field(word, 2 * _COUNT, _BYTES) + expected_bytes - arrived_bytes) & ((1 << _BYTES) - 1)
    is_complete = (pending == 0) & (pending_bytes == 0)
    parity = (word >> _PHASE).astype(np.int64) ^ is_complete
    pending = np.where(is_complete, expected, pending) & ((1 << _COUNT) - 1)
    fields = pending | (expected << _COUNT) | (pending_bytes << 2 * _COUNT)
    return np.asarray(fields.astype(np.uint64) | (parity.astype(np.uint64) << _PHASE))


#: Operations on an mbarrier: functions of the old word and the operand, a count or bytes, that return the new word.
_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "arrive": lambda word, count: _update_word(word, arrivals=count),
    "arrive_drop": lambda word, count: _update_word(word, arrivals=count, dropped=count),
    "expect_tx": lambda word, size: _update_word(word, expected_bytes=size),
    "complete_tx": lambda word, size: _update_word(word, arrived_bytes=size),
    "arrive.expect_tx": lambda word, size: _update_word(word, arrivals=1, expected_bytes=size),
    "arrive_drop.expect_tx": lambda word, size: _update_word(word, arrivals=1, dropped=1, expected_bytes=size),
}
#: Modifiers besides the operation, such as memory order, scope and state space.
_ORDER = {"release", "acquire", "relaxed", "cta", "cluster", "noComplete", "b64", "shared", "shared::cta",
          "shared::cluster"}  # fmt: skip


def update_barriers(chunk: Chunk, name: str, place: Value, operand: Array) -> Array:
    """Apply an operation of `_OPERATIONS` to the mbarriers of active threads; return the old word of each thread."""
    active_threads = np.nonzero(spread(chunk.active, chunk.shape))
    values = [spread(operand, chunk.shape)[active_threads]]
    previous = np.zeros(chunk.shape, np.uint64)
    chunk.has_written, chunk.spins = True, 0
    ((words, index, _),) = chunk.shared.find_atomic_cells(place, 8, chunk.active, chunk.make_reporter(), chunk.shape)
    operation = AtomicOperation(_OPERATIONS[name], frozenset())
    previous[active_threads] = apply_operation(operation, words, index, values, returns=True)
    return previous


def signal_barrier(
    chunk: Chunk, row: int, offset: int, report: Report, *, arrivals: int = 0, arrived_bytes: int = 0
) -> None:
    """Count arrivals or arrived bytes that the hardware, not a thread, signals at the mbarrier at ``offset``."""
    word = chunk.shared.view_bytes(row, offset, 8, report, is_written=True).view(np.uint64)
    word[:] = _update_word(word, arrivals=arrivals, arrived_bytes=arrived_bytes)
    chunk.has_written, chunk.spins = True, 0


def describe_wait(chunk: Chunk, threads: Array) -> str:
    """Describe the mbarrier that the first thread of the mask ``threads`` waits for; empty if there is none."""
    row, thread = (int(indices[0]) for indices in np.nonzero(spread(threads, chunk.shape)))
    address = int(chunk.barrier_waits[row, thread])
    if address < 0:
        return ""
    report = chunk.make_reporter()
    owner, offset = chunk.shared.find_owner(row, address, report)
    word = chunk.shared.view_bytes(owner, offset, 8, report, is_written=None).view(np.uint64)
    fields = ((0, _COUNT), (_COUNT, _COUNT), (2 * _COUNT, _BYTES))
    pending, expected, pending_bytes = (int(_extract_field(word, start, bits)[0]) for start, bits in fields)
    pending -= pending >> (_COUNT - 1) << _COUNT  # sign-extend: more arrivals or bytes than expected
    pending_bytes -= pending_bytes >> (_BYTES - 1) << _BYTES
    return (
        f"the mbarrier at shared address {offset} ({expected - pending} of {expected} arrivals, {pending} pending; "
        f"{count_noun(pending_bytes, 'transaction byte')} pending)"
    )


def _make_mbarrier_reader(instruction: Instruction, operand: Operand) -> Reader:
    base = operand.base if isinstance(operand, Address) else None
    if isinstance(base, Register) and base.type.size == 4:  # also without a state space, as in CCCL
        return make_address_reader(instruction, operand, "shared")
    return make_shared_reader(instruction, operand)


@op("mbarrier.pending_count.b64", "u32 = u64")
def _count_pending(chunk: Chunk, state: Array) -> list[Array]:
    return [_extract_field(state, 0, _COUNT).astype(np.uint32)]


@binds("mbarrier")
def _bind_barrier(instruction: Instruction) -> Step:
    names = [name for name in instruction.modifiers if name not in _ORDER]
    if ".".join(names) in _OPERATIONS:
        return _bind_update(instruction, ".".join(names))
    if names == ["init"]:
        return _bind_init(instruction)
    if names == ["inval"]:
        return _bind_invalidation(instruction)
    if names[:1] in (["test_wait"], ["try_wait"]) and {*names[1:]} <= {"parity"}:
        return _bind_wait(instruction)
    known = join_modifiers([*_OPERATIONS, "init", "inval", "test_wait{.parity}", "try_wait{.parity}"])
    raise unsupported(instruction, f"its operation is {join_modifiers(names)}; ptxcount has {known}")


def _bind_update(instruction: Instruction, name: str) -> Step:
    """Bind ``mbarrier.operation{...}.b64 {state,} [a]{, operand}`` for an operation of `_OPERATIONS`."""
    has_state = bool(instruction.operands) and not isinstance(instruction.operands[0], Address)
    place_of_barrier = 1 if has_state else 0
    expect_count(instruction, place_of_barrier + 1, place_of_barrier + 2)
    barrier, *arguments = instruction.operands[place_of_barrier:]
    place = _make_mbarrier_reader(instruction, barrier)

    def update(chunk: Chunk, *values: Array) -> list[Array]:
        return [update_barriers(chunk, name, place(chunk), *(values or (_ONE,)))]

    writes = [(argument, _U64) for argument in instruction.operands[:place_of_barrier]]
    return make_step(instruction, writes, [(source, _U32) for source in arguments], update)


def _bind_init(instruction: Instruction) -> Step:
    """Bind ``mbarrier.init.b64 [a], count``."""
    expect_count(instruction, 2)
    place = _make_mbarrier_reader(instruction, instruction.operands[0])

    def init(chunk: Chunk, count: Array) -> list[Array]:
        active_counts = spread(count, chunk.shape)[spread(chunk.active, chunk.shape)]
        for number in active_counts[(active_counts == 0) | (active_counts > _MAX_COUNT)].tolist()[:1]:
            raise unsupported(instruction, f"the count is {number}; allowed are 1 to {_MAX_COUNT}")
        word = count.astype(np.uint64) | count.astype(np.uint64) << np.uint64(_COUNT)  # pending and expected
        chunk.shared.store(place(chunk), 8, [word], chunk.active, chunk.make_reporter())
        return []

    return make_step(instruction, [], [(instruction.operands[1], _U32)], init)


def _bind_invalidation(instruction: Instruction) -> Step:
    """Bind ``mbarrier.inval.b64 [a]``, which makes the memory unwritten."""
    expect_count(instruction, 1)
    place = _make_mbarrier_reader(instruction, instruction.operands[0])

    def invalidate(chunk: Chunk) -> None:
        # Only check the access.
        report = chunk.make_reporter()
        chunk.shared.find_atomic_cells(place(chunk), 8, chunk.active, report, chunk.shape)
        for (start,), rows in iter_threads(chunk, [place]):
            for row in rows:
                chunk.shared.forget_bytes(*chunk.shared.find_owner(row, start, report), 8)

    return invalidate


def _bind_wait(instruction: Instruction) -> Step:
    """Bind ``mbarrier.{test,try}_wait{.parity}.b64 p, [a], {state,parity}{, time}``; the time has no effect."""
    expect_count(instruction, 3, 4)
    first, barrier, state = instruction.operands[:3]
    has_parity, place = "parity" in instruction.modifiers, _make_mbarrier_reader(instruction, barrier)

    def test_phase(chunk: Chunk, old: Array) -> list[Array]:
        address, active = place(chunk), chunk.active
        words, active_threads = np.zeros(chunk.shape, np.uint64), np.nonzero(spread(active, chunk.shape))
        ((units, index, _),) = chunk.shared.find_atomic_cells(address, 8, active, chunk.make_reporter(), chunk.shape)
        words[active_threads] = units[index]
        is_complete = (words >> _PHASE) != (old & 1 if has_parity else old >> _PHASE)
        chunk.spins += _POLL if (active & ~is_complete).any() else 0
        if not chunk.barrier_waits.size:
            chunk.barrier_waits = np.full(chunk.shape, -1)  # no thread waits
        addresses = spread(dense(address).astype(np.int64), chunk.shape)
        chunk.barrier_waits[active_threads] = np.where(is_complete, -1, addresses)[active_threads]
        if (active & is_complete).any():  # ordered after the accesses of arrived threads
            chunk.note_waits(active & is_complete, address)
        return [is_complete]

    return make_step(instruction, [(first, _PRED)], [(state, _U32 if has_parity else _U64)], test_phase)


@binds("cp", having={"mbarrier"})
def _bind_copy_arrival(instruction: Instruction) -> Step:
    """Bind ``cp.async.mbarrier.arrive{.noinc}.b64 [a]``."""
    expect_count(instruction, 1)
    place = _make_mbarrier_reader(instruction, instruction.operands[0])
    # Without .noinc, the instruction also expects its own arrival: pending arrivals stay, as if 0 bytes were expected.
    name, count = ("arrive", 1) if "noinc" in instruction.modifiers else ("expect_tx", 0)
    operand = np.full((1, 1), count, np.uint32)

    def step(chunk: Chunk) -> None:
        chunk.shared.wait_copies(chunk.active)  # a wait for the mbarrier includes these copies
        update_barriers(chunk, name, place(chunk), operand)

    return step
