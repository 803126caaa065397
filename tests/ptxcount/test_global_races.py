"""Races in global memory: random programs against lists of accesses, silent stores, and reported lines."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxcount
from tests.ptxcount.snippets import execute_snippet, module
from tests.ptxcount.test_races import Action, draw_action, list_words, write_lines

#: Operations on words at %rd2, and operations that order a block after all earlier accesses to global memory.
GLOBAL = {
    "load": "ld.global.u32 %r5, [%rd2];", "store": "st.global.u32 [%rd2], %r3;",
    "wide": "st.global.v2.u32 [%rd2], {1, 2};", "atomic": "atom.global.add.u32 %r5, [%rd2+1024], 1;",
    "acquire": "ld.acquire.gpu.global.u32 %r5, [%rd2+1024];", "block": "bar.sync 0;",
}  # fmt: skip


def _find_race(program: list[Action]) -> int | None:
    """Return the number of the first action that races, found in lists of accesses; blocks have four threads."""
    touched: list[tuple[int, int, str]] = []
    behind = [0] * 4
    for number, action in enumerate(program):
        kind = action[0].replace("wide", "store")
        if kind in ("block", "atomic", "acquire"):
            for t in range(16) if kind == "block" else range(*action[1:3]):
                behind[t // 4] = len(touched)
            continue
        now = [(t, word, kind) for t, word in list_words(action)]
        for t, word, _ in now:
            for u, earlier_word, earlier_kind in touched[behind[t // 4] :] + now * (kind == "store"):
                if u != t and word == earlier_word and "store" in (kind, earlier_kind):
                    return number
        touched += now
    return None


def test_first_race_as_in_lists_of_accesses() -> None:
    rng, clean = np.random.default_rng(5), 0
    for _ in range(100):
        kinds = rng.choice([*GLOBAL, "load"], 6).tolist()
        program = [draw_action(rng, kind, [0, 1, 4, 6, 8, 16], [0, 0, 0, 1, 4]) for kind in kinds]
        lines = write_lines(program, GLOBAL, "%r3", "mad.wide.u32 %rd2, %r6, 8, %rd1;")
        start = "ld.param.u64 %rd1, [p0]; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 4, %r0;"
        text = module("\n".join([start, *lines]), 1)
        arguments: list[Any] = [np.zeros(512, np.uint32)]
        counters = execute_snippet(text, arguments, threads=4, blocks=4, races="strict", distinct=True)
        actions = [finding.source.ptx_line - text.splitlines().index(lines[0]) - 1 for finding in counters.findings]
        assert min(actions, default=None) == _find_race(program), program
        clean += not actions
    assert 15 < clean < 85


@pytest.mark.parametrize(("value", "races"), [(5, False), (6, True)])
def test_equal_store_races_only_if_strict(value: int, races: bool) -> None:
    body = f"""
        ld.param.u64 %rd1, [p0]; ld.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r0, 3; @%p1 st.global.u32 [%rd1], {value};
    """
    for how in ("report", "strict"):
        arguments: list[Any] = [np.full(4, 5, np.uint32)]
        counters = execute_snippet(module(body, 1), arguments, threads=64, races=how, distinct=True)
        assert bool(counters.findings) == (races or how == "strict")


#: Two lines that race in global memory, and what the earlier access does. The first is empty if one line races alone.
LINES = {
    "x[i] = i;\nx[64 + i] = x[63 - i];": "writes",
    "int v = x[i]; x[i] = v + i + 1;\nx[63 - i] = v + 7;": "writes",
    "x[64 + i] = x[i];\nx[63 - i] = i;": "reads",
    "\nx[i & 1] = i;": "writes",
}


@pytest.mark.parametrize(("lines", "verb"), LINES.items())
def test_global_race_names_both_lines(lines: str, verb: str) -> None:
    kernels = (f"__global__ void k{n}(int* x) {{ int i = threadIdx.x;\n{each}\n}}\n" for n, each in enumerate(LINES))
    place = [*LINES].index(lines)
    (finding,) = ptxcount.count("".join(kernels), f"k{place}", 1, 64, [np.zeros(128, np.int32)]).findings
    assert (finding.code, finding.source.line) == ("global-race", 4 * place + 3)
    assert f"which another thread {verb} without synchronization" in finding.message
    earlier = rf", at source\.cu:{4 * place + 2} \(PTX line \d+\)$"
    assert re.search(earlier, finding.message) or lines[0] == "\n"
