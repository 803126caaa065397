"""Vector loads of which some elements are not read: narrower loads in machine code of ptxas, and in counts."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import ptxcount
from ptxcount.engine.executable import prepare_executable
from ptxcount.ptx.parser import parse
from ptxcount.ptx.program import TYPES
from tests.ptxcount.machine_code import HEADER, disassemble
from tests.ptxcount.snippets import module

_LOAD = re.compile(r"\b(?:LDG|LDL|LD)\.E?([.A-Z0-9]*) |\b(?:LDG|LDL|LD)\b()")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "U8": 1}
#: Modifiers before the vector.
_SPACES = ["global", "global.nc", "volatile.global", "local", ""]
_VECTORS = ["v4.b32", "v2.b32", "v2.b64", "v4.b16", "v2.b16", "v4.b8", "v2.b8"]


def _write_kernel(name: str, space: str, vector: str, used: int, mask: str) -> str:
    count, kind = int(vector[1]), vector[3:]
    names = [f"%v{element}" for element in range(count)]
    stores = "".join(f"st.global.{kind} [%d1+{64 * n}], %v{n};" for n in range(count) if used >> n & 1)
    load = f"ld{'.' * bool(space)}{space}.{vector} {{{', '.join(names)}}}, [%d0];"
    return (
        f".visible .entry {name}(.param .u64 a, .param .u64 b)\n{{ .reg .b64 %d<2>; "
        f".reg .b{max(16, 8 * TYPES[kind].size)} %v<{count}>; ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; "
        f"cvta.to.global.u64 %d1, %d1; {mask} {load} {stores} ret; }}\n"
    )


def _list_widths(text: str, nvdisasm: Path, folder: Path) -> dict[str, list[int]]:
    """Return the bytes of each load in the machine code of each kernel."""
    widths = {}
    for name, lines in disassemble(text, nvdisasm, folder).items():
        words = [(match[1] or "").split(".") for match in _LOAD.finditer("\n".join(lines))]
        widths[name] = sorted(next((_WIDTHS[word] for word in names if word in _WIDTHS), 4) for names in words)
    return widths


@pytest.mark.parametrize("has_mask", [True, False])
def test_loads_are_narrowed_as_in_ptxas(has_mask: bool, nvdisasm: Path, tmp_path: Path) -> None:
    """Volatile loads stay whole, but ptxas narrows their pairs of halfwords, which ptxcount does not follow."""
    kernels, predicted = list[str](), {}
    for space, vector in itertools.product(_SPACES, _VECTORS):
        if (space, vector) == ("volatile.global", "v2.b16"):
            continue
        for used in range(1, 2 ** int(vector[1])):
            size, name = TYPES[vector[3:]].size, f"k{len(kernels)}"
            used_bytes = sum((2**size - 1) << size * n for n in range(int(vector[1])) if used >> n & 1)
            mask = f'.pragma "used_bytes_mask {used_bytes}";' if has_mask else ""
            kernels.append(_write_kernel(name, space, vector, used, mask))
            loads = prepare_executable(parse(HEADER + kernels[-1]), name).entry.instructions
            parts = next(load.parts for load in loads if vector[:2] in load.modifiers)
            predicted[name] = sorted(part.width for part in parts) or [size * int(vector[1])]
    expected = _list_widths(HEADER + "".join(kernels), nvdisasm, tmp_path)
    assert len(expected) == len(kernels)
    assert {name: kernels[int(name[1:])] for name in expected if predicted[name] != expected[name]} == {}


@pytest.mark.parametrize("space", ["global", "global.nc"])
def test_repeated_loads_are_narrowed_together(space: str, nvdisasm: Path, tmp_path: Path) -> None:
    """Two loads of four words from one address, of which any words are read."""
    kernels, predicted = list[str](), {}
    for all_used in itertools.product(range(16), repeat=2):
        name = f"k{len(kernels)}"
        groups = ["{" + ", ".join(f"%r{4 * load + word}" for word in range(4)) + "}" for load in (0, 1)]
        words = [4 * load + word for load in (0, 1) for word in range(4) if all_used[load] >> word & 1]
        loads = " ".join(f"ld.{space}.v4.b32 {group}, [%d0];" for group in groups)
        stores = " ".join(f"st.global.b32 [%d1+{64 * word}], %r{word};" for word in words)
        kernels.append(
            f".visible .entry {name}(.param .u64 a, .param .u64 b)\n{{ .reg .b64 %d<2>; .reg .b32 %r<8>; "
            f"ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; cvta.to.global.u64 %d0, %d0; {loads} {stores} ret; }}\n"
        )
        code = prepare_executable(parse(HEADER + kernels[-1]), name).entry.instructions
        counted = [load for load in code if "v4" in load.modifiers and not load.is_removed]
        predicted[name] = sorted(width for load in counted for _, width in load.parts or ((0, 16),))
    expected = _list_widths(HEADER + "".join(kernels), nvdisasm, tmp_path)
    assert {name: kernels[int(name[1:])] for name in predicted if predicted[name] != expected[name]} == {}


@pytest.mark.parametrize(
    ("used", "requests", "sectors"),
    [((0,), 1, 16), ((0, 1), 1, 16), ((0, 3), 2, 32), ((1, 2), 2, 32), ((0, 1, 2), 1, 16), ((0, 1, 2, 3), 1, 16)],
)
def test_parts_of_a_load_are_requests(used: tuple[int, ...], requests: int, sectors: int) -> None:
    """Threads load 16 bytes each: a part of each thread's is in each of 16 sectors."""
    stores = " ".join(f"st.global.u32 [%rd2+{4 * word}], %r{word + 1};" for word in used)
    code = (
        "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 16, %rd1; "
        f"mad.wide.u32 %rd2, %r0, 16, %rd2; ld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd1]; {stores}"
    )
    arrays = [np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)]
    loads = ptxcount.count(module(code, 2), None, 1, 32, arrays).loads
    assert (loads.requests, loads.sectors) == (requests, sectors)
    assert [word for word in range(4) if arrays[1][4 * 31 + word] == 4 * 31 + word] == [*used]
