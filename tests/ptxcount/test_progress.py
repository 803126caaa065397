"""Threads that wait: locks, polls, launches without progress, and long ones."""

import json
import logging
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import pytest

import ptxcount
from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine import launch_progress
from ptxcount.report import costs, listing
from ptxcount.report.totals_table import format_table
from tests.ptxcount.snippets import execute_snippet, module
from tests.ptxcount.sources import compile_to_ptx


@lru_cache
def _compile(parameters: str, *bodies: str) -> str:
    """Compile kernels of the same parameters at once: k0, k1, ..."""
    kernels = (f"__global__ void k{n}({parameters}) {{ {body} }}" for n, body in enumerate(bodies))
    return compile_to_ptx("\n".join(kernels))


#: Name -> code of each thread before and after it adds one, and its atomic requests without polls, in two blocks of two
#: threads: a summand for each instruction. ``lock`` points to 64 zeros.
LOCKS = {
    "by the first thread": ("if (threadIdx.x) return; while (atomicCAS(lock, 0, 1));", "atomicExch(lock, 0);", 2 + 2),
    "by everybody": ("while (atomicCAS(lock, 0, 1) != 0);", "atomicExch(lock, 0);", 2 + 4),
    "by an exchange, and a store": ("while (atomicExch(lock, 1));", "*(volatile int*)lock = 0;", 2),
    "with pauses":  # nvcc takes the first turn out of the loop
        ("for (int n = 8; atomicCAS(lock, 0, 1); n *= 2) __nanosleep(n);", "atomicExch(lock, 0);", 2 + 2 + 4),
    "tickets":
        ("int mine = atomicAdd(lock, 1); while (atomicAdd(lock + 1, 0) != mine);", "atomicAdd(lock + 1, 1);",
         2 + 2 + 4),
    "tickets that are read":
        ("int mine = atomicAdd(lock, 1); while (((volatile int*)lock)[1] != mine);", "atomicAdd(lock + 1, 1);", 2 + 4),
    "the block before": (
        "if (threadIdx.x) return; volatile int* done = lock; while (blockIdx.x && !done[blockIdx.x - 1]);",
        "done[blockIdx.x] = 1;", 0,
    ),
    "one held, two wanted": (
        "int a = threadIdx.x % 7; for (;;) { if (!atomicCAS(lock + a, 0, 1)) { "
        "if (!atomicCAS(lock + a + 1, 0, 1)) break; atomicExch(lock + a, 0); } }",
        "atomicExch(lock + a + 1, 0); atomicExch(lock + a, 0);", None,  # they depend on the order of threads
    ),
}  # fmt: skip


def _add_one(name: str) -> str:
    addition = "atomicAdd(sum, 1)" if name == "one held, two wanted" else "*(volatile int*)sum += 1"
    return f"{LOCKS[name][0]} {addition}; __threadfence(); {LOCKS[name][1]}"


@pytest.mark.parametrize("name", LOCKS)
def test_locks_are_exclusive(name: str) -> None:
    total, ptx = np.zeros(1, np.int32), _compile("int* lock, int* sum", *map(_add_one, LOCKS))
    ptxcount.count(ptx, f"k{[*LOCKS].index(name)}", 2, 34, [np.zeros(64, np.int32), total], time_limit=30)
    assert total[0] == (2 if "threadIdx.x) return" in LOCKS[name][0] else 2 * 34)


def _count_patiently(monkeypatch: pytest.MonkeyPatch, count: Callable[[], LaunchCounters]) -> list[LaunchCounters]:
    """Count with much patience for a poll, and with little."""
    counters = []
    for first_patience, later_patience in ((200, 4), (7, 3)):
        monkeypatch.setattr("ptxcount.engine.schedule._FIRST_PATIENCE", first_patience)
        monkeypatch.setattr("ptxcount.engine.schedule._LATER_PATIENCE", later_patience)
        counters.append(count())
    return counters


@pytest.mark.parametrize("name", LOCKS)
def test_retried_locks_are_polls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> LaunchCounters:
        ptx = _compile("int* lock, int* sum", *map(_add_one, LOCKS))
        lock, total = np.zeros(64, np.int32), np.zeros(1, np.int32)
        return ptxcount.count(ptx, f"k{[*LOCKS].index(name)}", 2, 2, [lock, total])

    *_, atomic_requests = LOCKS[name]
    patient, impatient = _count_patiently(monkeypatch, count)
    assert listing.list_lines(patient) == listing.list_lines(impatient)
    assert (patient.polls > 0) == (impatient.polls > 0)
    assert atomic_requests is None or patient.totals()["atomic_requests"] == atomic_requests


def test_changing_retries_are_no_polls() -> None:
    ptx = _compile(
        "int* a", "int old = a[1], assumed; do { assumed = old; old = atomicCAS(a, assumed, assumed + 1); } "
        "while (assumed != old);", "while (atomicAdd(a, 1) < 9);",
        "int i = 0, x; do { if (i & 1) { x = 5; asm volatile(\"\"); } else { x = 6; asm volatile(\"\"); } "
        "i += atomicExch(a, x) != 7; } while (i < 8);",
    )  # fmt: skip
    # Each swap succeeds for one lane; a sum of 32 ones exceeds 9; a branch chooses the value of an exchange.
    for kernel, requests in (("k0", 32), ("k1", 2), ("k2", 8)):
        counters = ptxcount.count(ptx, kernel, 1, 32, [np.zeros(64, np.int32)])
        assert (counters.totals()["atomic_requests"], counters.polls) == (requests, 0)


@pytest.mark.parametrize("code", ["ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [s];",
                                  "stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {%r4};"])  # fmt: skip
def test_loop_that_accesses_matrices_has_no_polls(code: str) -> None:
    """Block 0 waits for a store of block 1, which polls no value."""
    body = f"""ld.param.u64 %rd1, [p0]; mov.u32 %r4, 0; st.shared.u32 [s], %r4; mov.u32 %r1, %ctaid.x;
        setp.eq.u32 %p1, %r1, 1; @%p1 bra STORE;
        AGAIN: {code} ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0; @%p2 bra AGAIN; bra END;
        STORE: bar.sync 0; st.volatile.global.u32 [%rd1], 1; END:"""
    text = module(body, 1, ".shared .align 16 .b8 s[128];")
    assert execute_snippet(text, [np.zeros(1, np.uint32)], blocks=2).polls == 0


def test_unreleased_lock_is_a_deadlock() -> None:
    ptx = _compile("int* lock", "while (atomicCAS(lock, 1, 0) == 0);")
    for blocks, threads, waits in ((2, 64, "128 threads wait"), (1, 1, "1 thread waits")):
        match = f"deadlock: it polls a location for a value that no thread will write; {waits} at"
        with pytest.raises(ptxcount.NoProgressError, match=match):
            ptxcount.count(ptx, None, blocks, threads, [np.zeros(1, np.int32)], time_limit=5)


#: Instructions that read the number 0 to %r2, and change nothing.
STRONG_READS = [
    *(f"ld.{order}.global.u32 %r2, [%rd1];" for order in ("volatile", "relaxed.gpu", "acquire.gpu")),
    "atom.global.max.u32 %r2, [%rd1], 0;",
]
#: Code after such a read in a loop of 1,000 turns. In the last two, the read could end the loop.
AFTER_READS = [
    "add.u32 %r4, %r4, %r2;",
    "setp.lt.u32 %p2, %r2, %r4; @!%p2 bra ON; mov.u32 %r4, %r2; ON:",
    "setp.ne.u32 %p2, %r2, 0; @%p2 bra END;",
    "setp.ne.u32 %p2, %r2, 0; @!%p2 bra ON; mov.u32 %r1, 1000; ON:",
]


@pytest.mark.parametrize("code", AFTER_READS)
@pytest.mark.parametrize("read", STRONG_READS)
def test_counted_loop_of_reads_is_no_deadlock(read: str, code: str) -> None:
    turn = f"{read} {code} add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1000; @%p1 bra L;"
    text = module(f"ld.param.u64 %rd1, [p0]; mov.u32 %r1, 0; mov.u32 %r4, 9; L: {turn} END:", 1)
    counters = execute_snippet(text, [np.zeros(1)])
    assert counters.loads.requests + counters.atomics.requests + counters.polls == 1000


@pytest.mark.parametrize("addition", ["red.global.add.u32 [%rd1], 1;", "atom.global.inc.u32 %r3, [%rd1], -1;"])
def test_loop_that_changes_what_it_polls_is_no_deadlock(addition: str) -> None:
    turn = f"{addition} ld.volatile.global.u32 %r2, [%rd1]; setp.lt.u32 %p1, %r2, 1000; @%p1 bra L;"
    memory = np.zeros(1, np.uint32)
    counters = execute_snippet(module(f"ld.param.u64 %rd1, [p0]; L: {turn}", 1), [memory], threads=1)
    assert memory[0] == counters.atomics.requests == 1000


#: Expected arrivals of an mbarrier at shared address 16, code of thread 0 before 64 threads wait, part of the error.
BARRIERS = [
    (65, "", "64 of 65 arrivals, 1 pending; 0"),
    (64, "mbarrier.expect_tx.shared.b64 [s+16], 48;", "64 of 64 arrivals, 0 pending; 48"),
    (63, "mbarrier.complete_tx.shared.b64 [s+16], 8;", "64 of 63 arrivals, -1 pending; -8"),
]


@pytest.mark.parametrize(("count", "code", "state"), BARRIERS)
def test_deadlock_names_the_mbarrier(count: int, code: str, state: str) -> None:
    wait = "W: mbarrier.test_wait.parity.shared.b64 %p2, [s+16], 0; @!%p2 bra W;"
    begin = ".shared .align 8 .b8 s[32]; setp.ne.u32 %p1, %r0, 0; @%p1 bra ON;"
    begin += f"mbarrier.init.shared.b64 [s+16], {count}; {code} ON: bar.sync 0;"
    text = module(f"{begin} mbarrier.arrive.shared.b64 %rd1, [s+16]; {wait}", 1)
    match = rf"deadlock: it waits for an mbarrier; 64 threads wait at .*16 \({state} transaction"
    with pytest.raises(ptxcount.NoProgressError, match=match):
        execute_kernel(text, "snippet", (1, 1, 1), (64, 1, 1), [np.zeros(1)])


#: A barrier that delays a block while other threads poll in vain.
LATER = "__syncthreads();"
#: Name -> code of two blocks of 64 threads on zeros in ``a``; load requests of all warps, one for each wait; and True
#: if there are polls, too. n is 8.
POLLS = {
    "a flag of another block":
        (f"if (blockIdx.x) {{ while (!a[0]); a[2] = a[1]; }} else {{ {LATER} a[1] = n; a[0] = 1; }}", 2 * 2, True),
    "a flag twice": (
        "if (threadIdx.x == 0) for (int k = 1; k < 4; k++) { if (blockIdx.x) { while (a[0] < k); a[1] = k; } "
        "else { a[0] = k; while (a[1] < k); } }", 3 * 2, False,
    ),
    **{
        f"{order} loads": (
            f"int f; if (blockIdx.x) {{ do asm volatile(\"ld.{order}.gpu.u32 %0, [%1];\" : \"=r\"(f) : \"l\"(a)); "
            f"while (!f); a[2] = a[1]; }} else {{ {LATER} a[1] = n; a[0] = 1; }}", 2 * 2, True,
        ) for order in ("relaxed", "acquire")
    },
    "with pauses": (f"if (blockIdx.x) while (!a[0]) __nanosleep(9); else {{ {LATER} a[0] = n; }}", 2, True),
    "a flag of the block": ("if (threadIdx.x < 32) while (!a[blockIdx.x]); else a[blockIdx.x] = 1;", 2, False),
    "so many times": ("int s = 0; for (int k = 0; k < n; k++) s += a[0]; if (s) a[1] = s;", 4 * 8, False),
    "what it stores itself": ("for (int k = 0; k < 8; k++) a[threadIdx.x] = a[threadIdx.x] + 1;", 4 * 8, False),
    "a list": ("int k = blockIdx.x; while (k < n) k += a[k] + 1; a[9] = k;", 2 * (8 + 7), False),  # from 0 or 1 on
}  # fmt: skip


def _count(name: str) -> LaunchCounters:
    ptx = _compile("volatile int* a, int n", *(body for body, *_ in POLLS.values()))
    arguments = [np.zeros(64, np.int32), np.int32(8)]
    return ptxcount.count(ptx, f"k{[*POLLS].index(name)}", 2, 64, arguments, time_limit=30)


@pytest.mark.parametrize("name", POLLS)
def test_counts_without_polls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, load_requests, has_polls = POLLS[name]
    patient, impatient = _count_patiently(monkeypatch, partial(_count, name))
    assert patient.totals()["load_requests"] == load_requests
    assert listing.list_lines(patient) == listing.list_lines(impatient)
    assert (patient.polls > 0, impatient.polls > 0) == (has_polls, has_polls)
    assert (patient.polls != impatient.polls) == has_polls


def test_reports_have_the_number_of_polls() -> None:
    counters = _count("a flag of another block")
    polls = counters.polls
    assert f"polling: {polls} repeated load requests, not in the totals" in format_table(counters)
    assert sum(f"{access.polls} polling requests" in listing.describe_cost(access) for access in counters.accesses) == 1
    assert json.loads(listing.format_json(counters))["polls"] == polls
    sectors = sum(access.sectors for access in counters.accesses)
    assert sum(cost.amount for cost in costs.list_costs(counters)) == sectors


#: Name -> loop of two threads, with zeros in ``a``, and True if it makes no progress.
LOOPS = {
    "computes": ("unsigned i = 0; while (i != 77777) { i = i * 4 + 1; __nanosleep(1); } a[1] = i;", True),
    "asks one place": (
        'int i = 1, j; do { asm volatile("ld.global.s32 %0, [%1];" : "=r"(j) : "l"(a)); i = i * 4 + 1; } while (i);',
        True,
    ),
    "writes one place": ("for (;;) ((volatile int*)a)[1] = 1;", True),
    "reads another place each time":
        ("int s = 0; for (int i = 0; i < 1000; i++) s = s * 3 + a[(i + s) & 63]; a[1] = s;", False),
    "waits with its block": ("for (int i = 0; i < 1000; i++) __syncthreads();", False),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_only_launch_without_progress_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxcount.machine.context.STALL_LIMIT", 0.05)
    monkeypatch.setattr(launch_progress, "_PATIENCE", 0.01)
    ptx = _compile("int* a", *(body for body, _ in LOOPS.values()))
    count = partial(ptxcount.count, ptx, f"k{[*LOOPS].index(name)}", 1, 2, [np.zeros(64, np.int32)])
    if not LOOPS[name][1]:
        assert count().threads == 2
        return
    with pytest.raises(ptxcount.NoProgressError, match=r"0.05 s without progress; .*; 2 threads are at .*PTX line"):
        count()
    with pytest.raises(ptxcount.TimeLimitExceededError, match=r"did not end within --time-limit 0.1 s; raise it"):
        count(time_limit=0.1)


def test_wait_that_gives_up_is_no_deadlock() -> None:
    numbers = np.zeros(2, np.int32)
    ptxcount.count(
        _compile("volatile int* a", "int i = 0; while (i < 900 && !a[0]) i++; a[1] = i;"), "k0", 3, 64, [numbers]
    )
    assert [*numbers] == [0, 900]


@pytest.mark.parametrize(("grid", "warns"), [((2**31 - 1, 65535, 1), True), ((10, 1, 1), False)])
def test_only_long_launch_logs_an_estimate(
    grid: tuple[int, int, int], warns: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(launch_progress, "_MIN_MEASURED", 0.0)
    with caplog.at_level(logging.WARNING, "ptxcount"):
        try:
            execute_kernel(module("", 1), "snippet", grid, (32, 1, 1), [np.zeros(1)], time_limit=0.3)
        except ptxcount.TimeLimitExceededError:
            assert warns
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == (1 if warns else 0)
    assert all(f"of {(2**31 - 1) * 65535} blocks took" in text and "the rest will take about" in text for text in texts)


#: Body of a loop of 32 warps over 8 elements of each thread, code after the loop -> requests of loads and of stores. In
#: the first turn, thread 100 finds the key; in the second, all threads see that in ``found``.
SEARCHES = {
    ("if (*(volatile int*)found >= 0) return; if (x[i] == key) { *found = i; return; }", ""): ((2 + 1) * 32, 1),
    ("if (*(volatile int*)found >= 0) break; if (x[i] == key) { *found = i; break; }", ""): ((2 + 1) * 32, 1),
    ("if (*found >= 0) return; if (x[i] == key) { *found = i; return; }", ""): ((1 + 8) * 32, 1),  # found is read once
    # Elements 0, 100 and 200 are equal: their threads, in three warps, leave and store alone.
    ("if (((volatile int*)x)[i] == i % 3 * key) break;", "found[threadIdx.x] = n;"): (8 * 32, 32 + 3),
}


def test_threads_that_leave_a_loop_run_at_once() -> None:
    head = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
    bodies = (f"{head} {{ {body} }} {tail}" for body, tail in SEARCHES)
    ptx, numbers = _compile("const int* x, int n, int key, int* found", *bodies), np.arange(8192, dtype=np.int32)
    for place, requests in enumerate(SEARCHES.values()):
        arguments = [numbers, np.int32(numbers.size), np.int32(100), np.full(256, -1, np.int32)]
        counters = ptxcount.count(ptx, f"k{place}", 4, 256, arguments)
        assert (counters.loads.requests, counters.stores.requests) == requests
