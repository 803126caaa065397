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
from ..atomic_operations import AtomicOperation, apply_operation
from ..opcode_registry import Step, binds, make_step, op
from ..operands import Reader, expect_count, make_address_reader, unsupported
from ..single_threads import iter_threads
from ..spaces import make_shared_reader

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
_COUNT, _BYTES = 20, 21
_PHASE = np.uint64(63)
_ONE = np.ones((1, 1), np.uint32)
#: Weight of a poll towards the spin limit: see `Schedule`.
_POLL = 100


def _field(word: Array, start: int, bits: int) -> Array:
    return np.asarray((word >> np.uint64(start)).astype(np.int64) & ((1 << bits) - 1))


def _update_word(word: Array, arrivals: Any = 0, to_come: Any = 0, dropped: Any = 0) -> Array:
    """Return an mbarrier's word after arrivals, expected bytes, and dropped threads; the phase may complete."""
    pending, expected = _field(word, 0, _COUNT) - arrivals, _field(word, _COUNT, _COUNT) - dropped
    coming = (_field(word, 2 * _COUNT, _BYTES) + to_come) & ((1 << _BYTES) - 1)
    done = (pending == 0) & (coming == 0)
    parity = (word >> _PHASE).astype(np.int64) ^ done
    fields = (np.where(done, expected, pending) & ((1 << _COUNT) - 1)) | (expected << _COUNT) | (coming << 2 * _COUNT)
    return np.asarray(fields.astype(np.uint64) | (parity.astype(np.uint64) << _PHASE))


def _signed(values: Array) -> Array:
    return values.astype(np.int64)


#: Operations on an mbarrier: functions of the old word and the operand (default 1) that return the new word.
_CHANGES: dict[str, Callable[[Array, Array], Array]] = {
    "arrive": lambda word, count: _update_word(word, _signed(count)),
    "arrive_drop": lambda word, count: _update_word(word, _signed(count), 0, _signed(count)),
    "expect_tx": lambda word, byte_count: _update_word(word, 0, _signed(byte_count)),
    "complete_tx": lambda word, byte_count: _update_word(word, 0, -_signed(byte_count)),
    "arrive.expect_tx": lambda word, byte_count: _update_word(_update_word(word, 0, _signed(byte_count)), 1),
    "arrive_drop.expect_tx": lambda word, given: _update_word(_update_word(word, 0, _signed(given)), 1, 0, 1),
}
#: Modifiers of memory order, scope and state space.
_ORDER = {"release", "acquire", "relaxed", "cta", "cluster", "noComplete", "b64", "shared", "shared::cta",
          "shared::cluster"}  # fmt: skip


def update_barriers(chunk: Chunk, name: str, place: Value, operand: Array) -> Array:
    """Apply an operation to the mbarriers of the active threads; return each thread's previous word."""
    active_threads = np.nonzero(spread(chunk.active, chunk.shape))
    values = [spread(operand, chunk.shape)[active_threads]]
    previous = np.zeros(chunk.shape, np.uint64)
    chunk.has_written, chunk.spins = True, 0
    for units, index, _ in chunk.shared.check_atomic(place, 8, chunk.active, chunk.make_reporter(), chunk.shape):
        previous[active_threads] = apply_operation(
            AtomicOperation(_CHANGES[name], frozenset()), units, index, values, returns=True
        )
    return previous


def complete_bytes(chunk: Chunk, row: int, offset: int, count: int, report: Report) -> None:
    """Subtract ``count`` arrived bytes from the tx-count of the mbarrier at ``offset`` in a block."""
    word = chunk.shared.view_bytes(row, offset, 8, report, is_written=True).view(np.uint64)
    word[:] = _update_word(word, 0, -count)
    chunk.has_written, chunk.spins = True, 0


def arrive_once(chunk: Chunk, row: int, offset: int, report: Report) -> None:
    """Count one arrival at an mbarrier of a block, by the hardware instead of a thread."""
    word = chunk.shared.view_bytes(row, offset, 8, report, is_written=True).view(np.uint64)
    word[:] = _update_word(word, 1)
    chunk.has_written, chunk.spins = True, 0


def describe_wait(chunk: Chunk, threads: Array) -> str:
    """Describe the barrier that the first of some threads waits for; empty if it waits for none."""
    row, thread = (int(axis[0]) for axis in np.nonzero(spread(threads, chunk.shape)))
    address = int(chunk.barrier_waits[row, thread])
    if address < 0:
        return ""
    owner, offset = chunk.shared.find_owner(row, address)
    word = chunk.shared.view_bytes(owner, offset, 8, chunk.make_reporter(), is_written=None).view(np.uint64)
    pending, expected, coming = (
        int(_field(word, start, bits)[0]) for start, bits in ((0, _COUNT), (_COUNT, _COUNT), (2 * _COUNT, _BYTES))
    )
    pending -= pending >> (_COUNT - 1) << _COUNT  # sign-extend: more arrivals or bytes than expected
    coming -= coming >> (_BYTES - 1) << _BYTES
    return (
        f"the mbarrier at shared address {offset} ({expected - pending} of {expected} arrivals, {pending} pending; "
        f"{coming} transaction bytes pending)"
    )


def _read_address(instruction: Instruction, operand: Operand) -> Reader:
    base = operand.base if isinstance(operand, Address) else None
    if isinstance(base, Register) and base.type.size == 4:  # also without a state space, as in CCCL
        return make_address_reader(instruction, operand, "shared")
    return make_shared_reader(instruction, operand)


@op("mbarrier.pending_count.b64", "u32 = u64")
def _count_pending(chunk: Chunk, state: Array) -> list[Array]:
    return [_field(state, 0, _COUNT).astype(np.uint32)]


@binds("mbarrier")
def _bind_barrier(instruction: Instruction) -> Step:
    """Bind ``mbarrier.operation{...}.b64 {state,} [a]{, operand}``."""
    names = [name for name in instruction.modifiers if name not in _ORDER]
    if ".".join(names) in _CHANGES:
        return _bind_update(instruction, ".".join(names))
    if names == ["init"]:
        return _bind_init(instruction)
    if names == ["inval"]:
        return _bind_invalidation(instruction)
    if names[:1] in (["test_wait"], ["try_wait"]) and {*names[1:]} <= {"parity"}:
        return _bind_wait(instruction)
    raise unsupported(instruction)


def _bind_update(instruction: Instruction, name: str) -> Step:
    returns = bool(instruction.operands) and not isinstance(instruction.operands[0], Address)
    expect_count(instruction, returns + 1, returns + 2)
    barrier, *arguments = instruction.operands[returns:]
    place = _read_address(instruction, barrier)

    def update(chunk: Chunk, *values: Array) -> list[Array]:
        return [update_barriers(chunk, name, place(chunk), *(values or (_ONE,)))]

    writes = [(argument, _U64) for argument in instruction.operands[:returns]]
    return make_step(instruction, writes, [(source, _U32) for source in arguments], update)


def _bind_init(instruction: Instruction) -> Step:
    """Bind ``mbarrier.init.b64 [a], count``."""
    expect_count(instruction, 2)
    place = _read_address(instruction, instruction.operands[0])

    def init(chunk: Chunk, count: Array) -> list[Array]:
        word = count.astype(np.uint64) * np.uint64(1 + (1 << _COUNT))
        chunk.shared.store(place(chunk), 8, [word], chunk.active, chunk.make_reporter())
        return []

    return make_step(instruction, [], [(instruction.operands[1], _U32)], init)


def _bind_invalidation(instruction: Instruction) -> Step:
    """Bind ``mbarrier.inval.b64 [a]``: check it like an atomic, then mark the memory as unwritten."""
    expect_count(instruction, 1)
    place = _read_address(instruction, instruction.operands[0])

    def invalidate(chunk: Chunk) -> None:
        chunk.shared.check_atomic(place(chunk), 8, chunk.active, chunk.make_reporter(), chunk.shape)
        for (start,), rows in iter_threads(chunk, [place]):
            for row in rows:
                chunk.shared.forget_bytes(*chunk.shared.find_owner(row, start), 8)

    return invalidate


def _bind_wait(instruction: Instruction) -> Step:
    """Bind ``mbarrier.{test,try}_wait{.parity}.b64 p, [a], {state,parity}{, time}``."""
    expect_count(instruction, 3, 4)
    first, barrier, state = instruction.operands[:3]
    parity, place = "parity" in instruction.modifiers, _read_address(instruction, barrier)

    def test_phase(chunk: Chunk, old: Array) -> list[Array]:
        words, active_threads = np.zeros(chunk.shape, np.uint64), np.nonzero(spread(chunk.active, chunk.shape))
        for units, index, _ in chunk.shared.check_atomic(
            place(chunk), 8, chunk.active, chunk.make_reporter(), chunk.shape
        ):
            words[active_threads] = units[index]
        done = (words >> _PHASE) != (old & 1 if parity else old >> _PHASE)
        chunk.spins += _POLL if (chunk.active & ~done).any() else 0
        if not chunk.barrier_waits.size:
            chunk.barrier_waits = np.full(chunk.shape, -1)
        addresses = spread(dense(place(chunk)).astype(np.int64), chunk.shape)
        chunk.barrier_waits[active_threads] = np.where(done, -1, addresses)[active_threads]
        if (chunk.active & done).any():  # ordered after the accesses of arrived threads
            chunk.note_waits(chunk.active & done, place(chunk))
        return [done]

    return make_step(instruction, [(first, _PRED)], [(state, _U32 if parity else _U64)], test_phase)


@binds("cp", having={"mbarrier"})
def _bind_copy_arrival(instruction: Instruction) -> Step:
    """Bind ``cp.async.mbarrier.arrive{.noinc}.b64 [a]``: an arrival, which is also expected unless ``.noinc``."""
    expect_count(instruction, 1)
    place = _read_address(instruction, instruction.operands[0])
    name = "arrive" if "noinc" in instruction.modifiers else "expect_tx"
    operand = np.full((1, 1), int(name == "arrive"), np.uint32)

    def step(chunk: Chunk) -> None:
        chunk.shared.wait_copies(chunk.active)  # a wait for the mbarrier includes these copies
        update_barriers(chunk, name, place(chunk), operand)

    return step
