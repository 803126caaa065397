"""Stand-ins for kernels of other packages: PTX that copies eight numbers, its arrays, modules of a package."""

import struct
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptxcount

#: Eight threads of a warp copy eight numbers.
COUNT = 8
POINTER = ".param .u64 .ptr .global .align 1"
Record = SimpleNamespace


def write_copy(parameters: list[str], source: tuple[int, int] = (0, 0), output: tuple[int, int] = (1, 0)) -> str:
    """Write a kernel that copies eight numbers from a pointer to another.

    `source` and `output` locate the pointers: index of a parameter and offset in it. In `parameters`, text after ``|``
    follows the parameter's name.
    """
    declarations = ",\n".join(
        f"{kind} p{n}{size}" for n, (kind, _, size) in enumerate(p.partition("|") for p in parameters)
    )
    return f"""\
.version 8.7
.target sm_90a
.address_size 64
.visible .entry copy(
{declarations}
)
.reqntid 32
{{
.reg .pred %p1; .reg .b32 %r<3>; .reg .b64 %rd<3>;
mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, {COUNT}; @%p1 bra $end;
ld.param.b64 %rd1, [p{source[0]}+{source[1]}]; mad.wide.u32 %rd1, %r1, 4, %rd1;
ld.param.b64 %rd2, [p{output[0]}+{output[1]}]; mad.wide.u32 %rd2, %r1, 4, %rd2;
ld.global.b32 %r2, [%rd1]; st.global.b32 [%rd2], %r2;
$end: ret;
}}
"""


def make_elf(machine: int, sections: dict[str, tuple[int, bytes]]) -> bytes:
    """Make an ELF file from sections: name -> type and content. A table of symbols finds names in the last section."""
    names = b"\0".join(name.encode() for name in ("", *sections, ".shstrtab", ""))
    contents = [*sections.values(), (3, names)]
    offset, table = 64, bytes(64)
    for name, (kind, content) in zip((*sections, ".shstrtab"), contents, strict=True):
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        size = 24 if kind in (2, 4) else 0  # of an entry of a table of symbols or relocations
        table += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, offset, len(content), len(contents), 0, 1, size)
        offset += len(content)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, offset, 0, 64, 0, 0, 64, len(contents) + 1, len(contents)
    )  # fmt: skip
    return b"".join((header, *(content for _, content in contents), table))


def make_cubin(ptx: str, sections: dict[str, tuple[int, bytes]] | None = None) -> bytes:
    """Make a cubin that holds PTX, with zeros for the ends of lines, and further sections."""
    return make_elf(190, {".nv_debug_ptx_txt": (1, ptx.replace("\n", "\0").encode()), **(sections or {})})


class Arrays:
    """The source and the output of a copy kernel."""

    def __init__(self) -> None:
        self.source, self.output = np.arange(COUNT, dtype=np.float32), np.zeros(COUNT, np.float32)

    def count(self, kernel: Any, *arguments: Any, arch: str = "sm_90", grid: Any = 1) -> None:
        """Count a copy kernel with both arrays and further arguments; assert its output and one sector an array."""
        counters = ptxcount.count(kernel, None, grid, None, [self.source, self.output, *arguments], arch=arch)
        assert (self.output == self.source).all()
        assert (counters.loads.sectors, counters.stores.sectors) == (1, 1)


def stand_in(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    """Put modules into ``sys.modules``; ``__`` in a name stands for a full stop."""
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
