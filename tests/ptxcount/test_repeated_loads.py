"""Repeated loads of global memory: those that are counted remain in machine code."""

from pathlib import Path

from ptxcount.engine.executable import prepare_executable
from ptxcount.ptx.parser import parse
from tests.ptxcount.machine_code import HEADER, disassemble

_BEGIN = """
.reg .pred %p<4>; .reg .b32 %r<24>; .reg .b64 %d<14>; .reg .f32 %f<2>; .shared .align 16 .b8 s[8192];
ld.param.u64 %d0, [o]; ld.param.u64 %d1, [g]; ld.param.u32 %r9, [n]; mov.u32 %r0, %tid.x; mov.u32 %r1, s;
mad.lo.u32 %r3, %r0, 4, %r1; mul.wide.u32 %d2, %r0, 8; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
add.s64 %d5, %d1, %d2; add.s64 %d6, %d4, 12; setp.lt.u32 %p1, %r0, %r9; setp.gt.u32 %p2, %r9, 40; mov.pred %p3, -1;
mov.u32 %r10, 0; mov.u32 %r11, 0; st.shared.u32 [%r3], %r0; bar.sync 0;
createpolicy.fractional.L2::evict_last.b64 %d7, 1.0;
mov.u64 %d8, 0; createpolicy.fractional.L2::evict_last.b64 %d8, 1.0;
createpolicy.fractional.L2::evict_first.b64 %d11, 1.0; createpolicy.fractional.L2::evict_last.b64 %d12, 0.5;
"""
_END = "xor.b32 %r12, %r11, 85; st.global.v2.u32 [%d3], {%r10, %r12};"
_PLAIN, _CONSTANT = "ld.global.u32 {}, [%d4];", "ld.global.nc.u32 {}, [%d4];"
_HINTED = "ld.global.L2::cache_hint.u32 {}, [%d4], "
#: First load, code between, and second load. Values go to %r10 and %r11.
_PAIRS = [
    *((load, between, load)
      for load in (_PLAIN, "ld.global.L1::evict_last.u32 {}, [%d4];")
      for between in (
          "", "st.global.u32 [%d3+64], %r0;", "st.shared.u32 [%r3+64], %r0;", "bar.sync 0;", "membar.gl;",
          "red.global.add.u32 [%d3+64], 1;", "red.shared.add.u32 [%r3+64], 1;", "cp.async.wait_all;",
          "shfl.sync.bfly.b32 %r20, %r0, 1, 31, -1; st.shared.u32 [%r3+128], %r20;", "bar.warp.sync -1;",
          "prefetch.global.L2 [%d4];", "prefetch.local.L2 [0];", "prefetchu.L1 [%d4];", "discard.global.L2 [%d0], 128;",
          "applypriority.global.L2::evict_normal [%d4], 128;", "multimem.st.relaxed.sys.global.u32 [%d0], %r0;",
          "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;",
          "st.shared::cta.u32 [%r3+64], %r0;", "mbarrier.init.shared.b64 [%r1], 32;",
          "mbarrier.arrive.shared.b64 %d9, [%r1];", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0};",
          "ld.acquire.gpu.global.u32 %r20, [%d3+64]; st.shared.u32 [%r3+128], %r20;")),
    *((_CONSTANT, between, _CONSTANT) for between in ("", "st.global.u32 [%d3+64], %r0;", "membar.gl;")),
    *((load, "", load) for load in (
        "ld.global.cg.u32 {}, [%d4];", "ld.global.cs.u32 {}, [%d4];", "ld.global.lu.u32 {}, [%d4];",
        "ld.volatile.global.u32 {}, [%d4];", "ld.relaxed.gpu.global.u32 {}, [%d4];", "ld.global.u8 {}, [%d4];",
        "@%p1 ld.global.u32 {}, [%d4];", "@%p3 ld.global.u32 {}, [%d4];",
        f"{_HINTED}%d7;")),
    *((first, "", second) for first, second in (
        (_PLAIN, _CONSTANT), (_PLAIN, "ld.global.L1::evict_last.u32 {}, [%d4];"),
        (_PLAIN, "ld.global.ca.u32 {}, [%d4];"), ("ld.global.ca.u32 {}, [%d4];", "ld.global.cg.u32 {}, [%d4];"),
        (_PLAIN, "@%p1 ld.global.u32 {}, [%d4];"), ("@%p1 ld.global.u32 {}, [%d4];", _PLAIN),
        ("@%p1 ld.global.u32 {}, [%d4];", "@%p2 ld.global.u32 {}, [%d4];"),
        ("@%p1 ld.global.u32 {}, [%d4];", "@!%p1 ld.global.u32 {}, [%d4];"),
        (_PLAIN, "ld.global.s32 {}, [%d4];"), (_PLAIN, "ld.global.b32 {}, [%d4];"),
        (_PLAIN, "ld.weak.global.u32 {}, [%d4];"), ("ld.global.u16 {}, [%d4];", "ld.global.s16 {}, [%d4];"),
        ("ld.global.u16 {}, [%d4];", "ld.global.b16 {}, [%d4];"), ("ld.global.u16 {}, [%d4];", _PLAIN),
        (_PLAIN, "ld.global.u32 {}, [%d5];"), ("ld.global.u32 {}, [%d4+16];", "ld.global.u32 {}, [%d6+4];"),
        (_PLAIN, "ld.global.u32 {}, [%d4+4];"), (_PLAIN, "ld.global.u32 {}, [%d0];"),
        (_PLAIN, f"{_HINTED}%d7;"), (f"{_HINTED}%d7;", _PLAIN),
        *((f"{_HINTED}%d7;", f"{_HINTED}{policy};") for policy in ("%d8", "%d11", "%d12", "%d0")))),
    (f"{_HINTED}%d0;", "", f"{_HINTED}%d0;"), (f"{_HINTED}%d3;", "add.s64 %d3, %d3, 64;", f"{_HINTED}%d3;"),
    ("ld.global.v2.u32 {{{}, %r20}}, [%d4];", "", "ld.global.v2.u32 {{%r21, {}}}, [%d4];"),
    *((f"mov.u32 %r20, {name}; mad.wide.u32 %d9, %r20, 4, %d4; ld.global.u32 {{}}, [%d9];", "",
       f"mov.u32 %r21, {name}; mad.wide.u32 %d10, %r21, 4, %d4; ld.global.u32 {{}}, [%d10];")
      for name in ("%clock", "%tid.y")),
    (_PLAIN, "add.s64 %d4, %d4, 512;", _PLAIN),
    (_PLAIN, "ld.global.u64 %d4, [%d4+1024];", _PLAIN),
    (_PLAIN, "ld.global.u32 %r20, [%d4]; st.shared.u32 [%r3+64], %r20;", _PLAIN),
]  # fmt: skip


def test_repeated_loads_are_removed_as_by_ptxas(nvdisasm: Path, tmp_path: Path) -> None:
    codes = [f"{first.format('%r10')} {code} {second.format('%r11')}" for first, code, second in _PAIRS]
    entries = (
        f".visible .entry k{number}(.param .u64 o, .param .u64 g, .param .u32 n)\n{{{_BEGIN}{code} {_END} ret;\n}}\n"
        for number, code in enumerate(codes)
    )
    text = HEADER + "".join(entries)
    program, wrong = parse(text), []
    for name, lines in disassemble(text, nvdisasm, tmp_path).items():
        executable = prepare_executable(program, name)
        loads = [load for load in executable.entry.instructions if load.opcode == "ld" and "global" in load.modifiers]
        counted = sum(not load.is_removed for load in loads)
        remaining = sum("LDG." in line for line in lines)
        if counted != remaining:
            wrong.append(f"{codes[int(name[1:])]} counted {counted}, machine code has {remaining}")
    assert wrong == [], "\n".join(wrong)
