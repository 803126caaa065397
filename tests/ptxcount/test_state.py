"""State between instructions: registers, accesses, written memory, steps."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from ptxcount.engine.execute import execute_kernel
from ptxcount.util import errors
from tests.ptxcount.snippets import PLACES, SHARED, execute_snippet, module, words_after

Fault = type[errors.KernelFaultError]


def test_guarded_write_spares_other_threads() -> None:
    """The register was written in an earlier basic block."""
    out = words_after("""
        mov.u32 %r4, 7; setp.lt.u32 %p1, %r0, 20;
        bra NEXT;
        NEXT: @%p1 mov.u32 %r4, 5; st.global.u32 [%rd1], %r4;
    """)
    assert out.tolist() == [5] * 20 + [7] * 44


@pytest.mark.parametrize(("step", "first", "misaligned_thread"), [(4, 1, 0), (2, 0, 1)])
def test_misaligned_access_names_its_thread(step: int, first: int, misaligned_thread: int) -> None:
    """Thread t of each block loads 4 bytes at byte first + step * t."""
    body = f"""
        ld.param.u64 %rd2, [p0]; mov.u32 %r6, %ctaid.x; mad.wide.u32 %rd2, %r6, 128, %rd2;
        mad.lo.u32 %r4, %r0, {step}, {first}; cvt.u64.u32 %rd3, %r4; add.u64 %rd2, %rd2, %rd3;
        ld.global.u32 %r5, [%rd2];
    """
    with pytest.raises(errors.MisalignedError, match="is not a multiple of 4 bytes") as caught:
        words_after(body, threads=16, blocks=2)
    assert (caught.value.block, caught.value.thread) == ((0, 0, 0), (misaligned_thread, 0, 0))


@pytest.mark.parametrize("space", ["global", "shared", "local", "const"])
def test_isspacep_tells_the_space(space: str) -> None:
    """``cvta`` makes a generic address of any offset: here, that of ``s`` stands for one in constant memory."""
    for origin in ("global", "shared", "local", "const"):
        results = words_after(f"""
            {".local .align 4 .b8 mine[4]; mov.u64 %rd3, mine;" if origin == "local" else "cvt.u64.u32 %rd3, %r7;"}
            {"ld.param.u64 %rd3, [p0];" if origin == "global" else ""}
            cvta.{origin}.u64 %rd4, %rd3; isspacep.{space} %p1, %rd4; selp.u32 %r5, 1, 0, %p1;
            st.global.u32 [%rd1], %r5;
        """)
        assert set(results.tolist()) == {int(space == origin)}


#: Operation, operand, and function of the result on word i, which holds i and which threads i and i + 32 share.
REDUCTIONS = [
    ("add.u32", "3", lambda i: i + 6), ("min.s32", "-1", lambda i: 2**32 - 1),
    ("max.u32", "9", lambda i: max(i, 9)), ("and.b32", "5", lambda i: i & 5), ("or.b32", "5", lambda i: i | 5),
    ("xor.b32", "%r0", lambda i: i ^ i ^ (i + 32)),
    ("inc.u32", "4", lambda i: 0 if i == 3 else 1 if i >= 4 else i + 2),
    ("dec.u32", "4", lambda i: 3 if i == 0 or i > 4 else 4 if i == 1 else i - 2),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "operand", "expected"), REDUCTIONS, ids=[row[0] for row in REDUCTIONS])
def test_red_of_two_threads_is_exact(operation: str, operand: str, expected: Any) -> None:
    place = "ld.param.u64 %rd1, [p0]; and.b32 %r4, %r0, 31; mad.wide.u32 %rd1, %r4, 4, %rd1;"
    out = words_after(f"{place} red.global.{operation} [%rd1], {operand};", size=32)
    assert out.tolist() == [*map(expected, range(32))]


def test_word_behind_a_wide_store_is_unwritten() -> None:
    """Thread 0 writes words 0 and 1. Then thread i adds to word i: thread 2 is the first with an unwritten word."""
    body = "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u64 [%r7], 1; bar.sync 0; red.shared.add.u32 [%r1], 1;"
    with pytest.raises(errors.UninitializedReadError) as caught:
        words_after(body)
    assert caught.value.thread == (2, 0, 0)


@pytest.mark.parametrize("guard", ["", "setp.lt.u32 %p1, %r0, 3; @%p1 "])
@pytest.mark.parametrize("access", ["ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];",
                                    "st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};"])  # fmt: skip
def test_vector_across_an_end_is_out_of_bounds(access: str, guard: str) -> None:
    body = f"ld.param.u64 %rd2, [p0]; mad.wide.u32 %rd2, %r0, 16, %rd2;\n{guard}{access}"
    assert words_after(body, threads=2, size=10).size  # two vectors fit
    message = "16 bytes at 0x.*, which is byte 32 of argument 0 of 40 bytes"
    _expect_out_of_bounds(body, access, message, thread=2, size=10)


@pytest.mark.parametrize(("access", "message"), [
    ("ld.param.v2.u64 {%rd2, %rd3}, [p0];", "16 bytes .* byte 0 of p0 of 8 bytes"),
    ("ld.param.u32 %r4, [p0+8];", "4 bytes .* byte 8 of p0 of 8 bytes"),
    ("ld.param.u64 %rd2, [p0+4];", "8 bytes .* byte 4 of p0 of 8 bytes"),
    ("ld.param.u8 %r4, [p0-1];", "1 byte at 0x.*, 1 byte before p0 of 8 bytes"),
    ("ld.param.u8 %r4, [%r0];", "1 byte at 0x5: a null pointer"),
])  # fmt: skip
def test_read_outside_a_parameter_is_out_of_bounds(access: str, message: str) -> None:
    guard = "setp.ge.u32 %p1, %r0, 5; "
    _expect_out_of_bounds(f"{guard}@%p1 {access}", access, message, thread=5, size=64)


def _expect_out_of_bounds(body: str, access: str, message: str, thread: int, size: int) -> None:
    """Assert that an access to an array of `size` words is out of bounds, with its line and its first thread."""
    with pytest.raises(errors.OutOfBoundsError, match=message) as caught:
        words_after(body, size=size)
    fault = caught.value
    assert access in module(PLACES + body, 1, SHARED).splitlines()[fault.source.ptx_line - 1]
    assert (fault.block, fault.thread) == ((0, 0, 0), (thread, 0, 0))


#: Special register -> function of its value from thread, block, and number ``t`` of the thread in its block.
SPECIAL: dict[str, Any] = {
    **{f"%tid.{axis}": lambda point, n=n: point["thread"][n] for n, axis in enumerate("xyz")},
    **{f"%ctaid.{axis}": lambda point, n=n: point["block"][n] for n, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": lambda point, n=n: (5, 4, 3)[n] for n, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": lambda point, n=n: (2, 3, 2)[n] for n, axis in enumerate("xyz")},
    **{f"%cluster_ctaid.{axis}": lambda point, n=n: point["block"][n] % (1, 3, 2)[n] for n, axis in enumerate("xyz")},
    **{f"%clusterid.{axis}": lambda point, n=n: point["block"][n] // (1, 3, 2)[n] for n, axis in enumerate("xyz")},
    **{f"%nclusterid.{axis}": lambda point, n=n: (2, 1, 1)[n] for n, axis in enumerate("xyz")},
    "%cluster_ctarank": lambda point: point["block"][1] + 3 * point["block"][2],
    "%cluster_nctarank": lambda point: 6,
    "%laneid": lambda point: point["t"] % 32,
    "%warpid": lambda point: point["t"] // 32,
    "%nwarpid": lambda point: 2,
    "WARP_SZ": lambda point: 32,
    "%lanemask_eq": lambda point: 1 << point["t"] % 32,
    "%lanemask_lt": lambda point: sum(1 << lane for lane in range(32) if lane < point["t"] % 32),
    "%lanemask_le": lambda point: sum(1 << lane for lane in range(32) if lane <= point["t"] % 32),
    "%lanemask_gt": lambda point: sum(1 << lane for lane in range(32) if lane > point["t"] % 32),
    "%lanemask_ge": lambda point: sum(1 << lane for lane in range(32) if lane >= point["t"] % 32),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_registers_of_each_thread(name: str) -> None:
    """Blocks of 5 x 4 x 3 threads in a grid of 2 x 3 x 2: each thread stores at its linear index, x first."""
    body = f"""
        mov.u32 %r1, %tid.y; mad.lo.u32 %r0, %r1, 5, %r0; mov.u32 %r1, %tid.z; mad.lo.u32 %r0, %r1, 20, %r0;
        mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 60, %r0; mov.u32 %r1, %ctaid.y; mad.lo.u32 %r0, %r1, 120, %r0;
        mov.u32 %r1, %ctaid.z; mad.lo.u32 %r0, %r1, 360, %r0;
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1; mov.u32 %r2, {name}; st.global.u32 [%rd1], %r2;
    """
    out = np.zeros((2 * 3 * 2, 5 * 4 * 3), np.uint32)
    execute_kernel(module(body, 1), "snippet", (2, 3, 2), (5, 4, 3), [out], cluster=(1, 3, 2))
    for (number, t), value in np.ndenumerate(out):
        point = {"t": t, "thread": (t % 5, t // 5 % 4, t // 20), "block": (number % 2, number // 2 % 3, number // 6)}
        assert value == SPECIAL[name](point), point


@pytest.mark.parametrize("align", [1, 8, 16, 64])
def test_alloca_is_aligned(align: int) -> None:
    body = f"""
        ld.param.u64 %rd1, [p0]; alloca.u64 %rd2, 5; alloca.u64 %rd3, 8, {align}; alloca.u64 %rd4, 1;
        sub.u64 %rd3, %rd3, %rd2; sub.u64 %rd4, %rd4, %rd2; st.global.v2.u64 [%rd1], {{%rd3, %rd4}};
    """
    out = np.zeros(2, np.int64)
    execute_snippet(module(body, 1), [out], threads=1)
    second = -(-5 // align) * align  # the next multiple after the first 5 bytes
    third = -(-(second + 8) // 8) * 8  # by default, a multiple of 8
    assert out.tolist() == [second, third]


def test_restored_stack_gives_its_memory_again() -> None:
    """The second allocation begins where the first one began."""
    body = """
        ld.param.u64 %rd1, [p0]; alloca.u64 %rd5, 8; stacksave.u64 %rd2; alloca.u64 %rd3, 8; stackrestore.u64 %rd2;
        alloca.u64 %rd4, 8; sub.u64 %rd4, %rd4, %rd3; sub.u64 %rd3, %rd3, %rd5; st.global.v2.u64 [%rd1], {%rd3, %rd4};
    """
    out = np.ones(2, np.int64)
    execute_snippet(module(body, 1), [out], threads=1)
    assert out.tolist() == [8, 0]


@pytest.mark.parametrize("window", [5, 9, 127, 128, 255])
def test_address_of_no_space_is_out_of_bounds(window: int) -> None:
    body = f"mov.u64 %rd1, {window << 56 | 64:#x}; ld.u32 %r1, [%rd1];"  # the upper byte of an address tells its space
    with pytest.raises(errors.OutOfBoundsError):
        execute_snippet(module(body, 1), [np.zeros(64, np.uint32)])


@pytest.mark.parametrize(("space", "most", "language", "message"), [
    ("shared", 49152, 4, "a block has 49153 bytes of static shared memory; at most 49152 are allowed"),
    ("shared", 232448, 7, "a block has 232449 bytes of shared memory; at most 232448 are allowed"),  # cuTile
    ("local", 524288, 4, "a thread has 524289 bytes of local memory; at most 524288 are allowed"),
])  # fmt: skip
def test_memory_beyond_a_limit_is_refused(space: str, most: int, language: int, message: str) -> None:
    for size in (most, most + 1):
        text = module(f"mov.u32 %r1, big; st.{space}.u8 [%r1+{size - 1}], 1;", 0, f".{space} .b8 big[{size}];")
        text = text.replace("snippet()", f"snippet()\n.language {language}")
        with nullcontext() if size == most else pytest.raises(errors.LaunchError, match=message):
            execute_snippet(text, [], threads=1)


@pytest.mark.parametrize("access", ["ld.{}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%r8];",
                                    "st.{}.v4.u32 [%r8], {{%r1, %r2, %r3, %r4}};"])  # fmt: skip
@pytest.mark.parametrize(("space", "place", "error", "message"), [
    ("shared", 32, errors.OutOfBoundsError, "16 bytes at shared address 32; the block has 40 bytes of shared memory$"),
    ("local", 32, errors.OutOfBoundsError, "16 bytes at address 32 of local memory; the thread has 40 bytes"),
    ("shared", 8, errors.MisalignedError, "16 bytes at shared address 8, which is not a multiple of 16 bytes"),
    ("local", 8, errors.MisalignedError, "16 bytes at address 8 of local memory, which is not a multiple of 16"),
])  # fmt: skip
def test_vector_must_fit_and_be_aligned(space: str, place: int, error: Fault, message: str, access: str) -> None:
    guarded = f"setp.eq.u32 %p1, %r0, 3; @%p1 {access.format(space)}"
    text = module(f"mov.u32 %r8, b; add.u32 %r8, %r8, {place};\n{guarded}", 0, f".{space} .align 16 .b8 b[40];")
    with pytest.raises(error, match=message) as caught:
        execute_snippet(text, [])
    assert caught.value.thread == (3, 0, 0)


@pytest.mark.parametrize("offset", [1 << 32, (1 << 32) + 4, 5 << 32, 1 << 62, -(1 << 32)])
def test_shared_offsets_wrap(offset: int) -> None:
    """Shared addresses have 32 bits, so the second load is not out of bounds."""
    loads = f"ld.shared.u32 %r5, [%r7]; ld.shared.u32 %r6, [%r7+{offset}]; add.u32 %r4, %r5, %r6;"
    text = module(f"mov.u32 %r7, s; {loads}", 1, ".shared .align 16 .b8 s[256];")
    counters = execute_snippet(text, [np.zeros(1)], unwritten="off", races="off")
    assert counters.totals()["shared_load_requests"] == 2


@pytest.mark.parametrize("rounds", [1, 100])
def test_step_limit_is_exact(rounds: int) -> None:
    body = f"mov.u32 %r4, 0; AGAIN: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, {rounds}; @%p1 bra AGAIN;"
    before, loop, after = 1 + 6 + 1, 3, 1  # instructions of `module`, PLACES and the body; of the loop; and ``ret``
    steps = (before + 1) + rounds * (loop + 1) + (after + 1)  # each basic block costs one more
    words_after(body, step_limit=steps)
    with pytest.raises(errors.StepLimitExceededError, match=f"{steps - 1} instructions"):
        words_after(body, step_limit=steps - 1)


def test_warp_counts_its_longest_thread() -> None:
    """Thread t has 9 instructions, and 3 for each of t rounds of a loop, at least one."""
    body = "mov.u32 %r4, 0; AGAIN: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r0; @%p1 bra AGAIN;"
    text = module(PLACES + body, 1, SHARED)
    for blocks in (3, 40):
        counters = execute_snippet(text, [np.zeros(1, np.uint32)], threads=41, blocks=blocks)
        assert counters.thread_instructions == blocks * sum(9 + 3 * max(t, 1) for t in range(41))
        assert counters.warp_instructions == blocks * sum(9 + 3 * last for last in (31, 40))
