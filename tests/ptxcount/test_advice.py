"""ADVICE.md: each example gets its advice before the change and none after, with its counts."""

import re
from pathlib import Path

import numpy as np
import pytest

from ptxcount import count
from ptxcount.cli.argument_words import make_arguments
from ptxcount.gate.advice import Advice, find_advice
from ptxcount.gate.diagnostics import CODES
from ptxcount.machine.argument_layout import KernelArgument

PAGE = (Path(__file__).parents[2] / "ptxcount" / "ADVICE.md").read_text(encoding="utf-8")
EXAMPLES = {
    match[1]: match.groups()[1:]
    for match in re.finditer(
        r"^## (PC\d+) ([\w-]+)\n.*?```cuda\n(.*?)```\n\nBefore: ([\d.]+).*? After: ([\d.]+)", PAGE, re.S | re.M
    )
}
#: All examples as one source, compiled once.
SOURCE = "\n".join(f"namespace {code} {{\n{source}}}" for code, (_, source, *_) in EXAMPLES.items())
ONE = ["out=float32[1024]", "in=float32[32768]=random(1)"]
#: Grid and block of a rule's example, if not 4 blocks of 256 threads; and its arguments after those of `ONE`.
BLOCKS = {"PC105": (1, (32, 8))}  # bank-conflict
MORE = {"PC102": ["n=int32:32"], "PC108": ["shuffled=int32[1024]=permutation(1)", "sorted=int32[1024]"]}


def test_each_rule_has_a_chapter() -> None:
    assert {code: name for code, (name, *_) in EXAMPLES.items()} == {c: n for c, n in CODES.items() if c >= "PC1"}


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_has_its_advice_and_numbers(code: str) -> None:
    *_, sectors_before, sectors_after = EXAMPLES[code]
    grid, block = BLOCKS.get(code, (4, (256,)))
    words = [*ONE, *MORE.get(code, [])]
    for kernel, number in (("before", sectors_before), ("after", sectors_after)):
        arguments = make_arguments(words)
        counters = count(SOURCE, f"{code}::{kernel}", grid, block, arguments)
        codes = [advice.code for advice in find_advice(counters, arguments, words)]
        assert (code in codes) == (kernel == "before"), codes
        loads = counters.shared_loads if code == "PC105" else counters.loads
        # Global memory has no wavefronts, and shared memory no sectors: one of the two is 0.
        worst = max((access.sectors + access.wavefronts) / access.requests for access in loads.accesses)
        assert round(worst) == float(number)


PADDED = """__shared__ float tile[256]; int row = i % 16, m; tile[threadIdx.x] = 0; __syncthreads();
#pragma unroll 1
for (m = 0; m < 8; m++) if (row > m) tile[row * 16 + m] = m; out[i] = tile[0];"""
COLUMNS = """__shared__ float s[8192]; int lane = i % 32;
for (int m = threadIdx.x; m < 8192; m += 256) s[m] = m; __syncthreads();
out[i] = s[8 * lane]
+ s[256 * lane];"""
TILE = """__shared__ float tile[32][32]; int x = i % 32, y = threadIdx.x / 32;
for (int m = y; m < 32; m += 8) tile[m][x] = in[i]; __syncthreads();
for (int m = y; m < 32; m += 8) out[i] = tile[x][m];"""
#: Another array precedes the tile, whose rows then do not begin at a multiple of their size.
PAIRS = "__shared__ volatile float before[20]; before[i % 20] = 0; " + TILE.replace("[x][m]", "[x % 2][x / 2 + m / 2]")
FOUR = "out[i] = (i < 512 ? in[4 * i] : 0) +\nin[4 * i + 1] +\nin[4 * i + 2] *\nin[4 * i + 3] +\nin[8 * i];"
ROWS = "int y = i % 32, x = i / 32; out[i] = in[y * 33 + x];"
PLACES = "out[i] = in[2 * i + 1] + in[2 * i] + in[2 * i + 2];"
MUCH = "float s = 0; for (int m = 0; m < 16; m++) s += in[i + m * 512];\nout[i] = s + {};"
#: Body of a kernel, and the names of its advice.
BODIES = [
    ("out[i] = in[i - (i > 0)] + in[i] + in[i + 1];", []),  # a stencil with misaligned neighbours
    ("out[i] = in[0];", []),  # a broadcast needs one sector
    ("if (threadIdx.x == 0) out[blockIdx.x * 32] = in[i];", []),  # a single lane
    ("out[i] = in[1023 - i];", []),  # reversed, but dense
    ("out[i] = in[i / 2 * 2];", ["scattered-access"]),  # half of each sector
    ("((char*)out)[i] = ((const char*)in)[i];", ["narrow-access", "narrow-access"]),  # load and store
    (ROWS, ["rows-and-columns"]),
    ("out[i] = in[2 * i + 1] +\nin[2 * i + 2];", ["array-of-structs"]),  # two places outside an aligned pair
    ("float s = 0; for (int m = 0; m < two * 4; m++) s += in[i * i % 31 * 512 + m * 64]; out[i] = s;",
     ["scattered-access"]),  # the next iteration of a lane is in another sector
    (MUCH.replace("out[i]", "((char*)out)[i]").replace("16", "10").format("0"), []),  # narrow, but 1 of 11 requests
    ("if (i & 16) out[i] = in[2 * i]; else out[i] = in[2 * i + 1] + 1;", ["strided-access"]),  # no lane touches both
    ("out[i] = in[two * i];", ["strided-access"]),  # an argument of 2 is no row
    ("if (i % 2 == 0) out[i / 2] = in[2 * i];", ["strided-access"]),  # no lane has an active neighbour
    ("out[i] = in[i + 1] + in[i + 4096];", []),  # one of two accesses to `in` is aligned
    ("float sum = 0; for (int m = 0; m < two * 32; m++) sum += in[i * i % 31 * 512 + m]; out[i] = sum;",
     ["rows-and-columns"]),  # each lane iterates over a row
    ("out[i] = in[i / 32 * 33 + i % 32];", ["misaligned"]),  # warps begin 33 elements apart
    (MUCH.format("in[2 * i]"), ["strided-access"]),  # 11 % of the sectors
    (MUCH.format("(i < 32 ? in[8 * i] : 0)"), []),  # less than 2 %
    ("__shared__ float s[512]; s[2 * threadIdx.x] = in[i]; __syncthreads(); out[i] = s[2 * threadIdx.x];",
     ["bank-conflict", "bank-conflict"]),
    (PADDED, ["bank-conflict"]), (COLUMNS, ["bank-conflict", "bank-conflict"]), (TILE, ["bank-conflict"]),
    (PAIRS, ["bank-conflict"]), (PLACES, ["array-of-structs"]), (FOUR, ["narrow-access", "strided-access"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "names"), BODIES)
def test_access_patterns_get_their_advice(body: str, names: list[str]) -> None:
    assert [CODES[advice.code] for advice in _find_advice(body)] == names


#: Body -> end of each advice, before the numbers in brackets.
TEXTS = {
    ROWS: ["; the next warp is 4 bytes away; exchange the axes of lane and warp, or use a tile in shared memory"],
    PADDED: ["to get 1, add 4 bytes after every 128"],
    COLUMNS: ["to get 1, add 4 bytes after every 1024", "let a warp access 32 consecutive words"],
    TILE: ["to get 1, add 4 bytes after every 128"],
    PLACES: ["and 2 elements in each 8 bytes are accessed; let neighbouring lanes access consecutive elements, as "
             "with one array per struct member, or use shared memory"],
    PAIRS: ["to get 1, add 64 bytes after every 128"],  # a request reads the same 16 banks in two rows of 128 bytes
}  # fmt: skip


@pytest.mark.parametrize("body", TEXTS)
def test_advice_names_array_and_remedy(body: str) -> None:
    texts = [advice.text.partition(" (")[0] for advice in _find_advice(body)]
    assert all(text.endswith(end) for text, end in zip(texts, TEXTS[body], strict=True)), texts
    assert all(text.startswith(("load of tile: ", "store of tile: ", "load of s: ", "load of in: ")) for text in texts)


def test_one_advice_per_cause() -> None:
    """Lines 0 to 3 of `FOUR` read the members of 16 bytes. Line 1 is named first, as line 0 has half the threads."""
    first, second = _find_advice(FOUR)
    assert first.text.startswith("load of in: neighbouring lanes are 16 bytes apart, and 4 accesses fill these bytes")
    file, line = first.places[0]
    assert sorted(first.places) == [(file, (line or 0) + offset) for offset in range(-1, 3)]
    assert (CODES[second.code], second.places) == ("strided-access", [(file, (line or 0) + 3)])


def _find_advice(body: str) -> list[Advice]:
    bodies = [text for text, _ in BODIES]
    source = "\n".join(
        f"__global__ void k{n}(float* out, const float* in, int two) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\n{text} }}"
        for n, text in enumerate(bodies)
    )
    arguments: list[KernelArgument] = [np.zeros(1024, np.float32), np.zeros(16384, np.float32), np.int32(2)]
    counters = count(source, f"k{bodies.index(body)}", 4, 256, arguments, races="off")
    return [*find_advice(counters, arguments, [*ONE, "two=int32:2"])]


def test_declared_rows_become_an_array_per_column() -> None:
    arguments: list[KernelArgument] = [np.zeros(32, np.float32), np.zeros((32, 4), np.float32)]
    body = "out[threadIdx.x] = in[4 * threadIdx.x];"
    counters = count(f"__global__ void k(float* out, const float* in) {{ {body} }}", "k", 1, 32, arguments)
    (advice,) = find_advice(counters, arguments, ["out=float32[32]", "in=float32[32,4]"])
    assert (advice.code, "a declared row of in; let neighbouring" in advice.text) == ("PC103", True)
    assert "as with one array per column, or" in advice.text
