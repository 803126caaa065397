"""Kernels in a shorthand, with accesses to shared memory that ptxas merges or keeps.

``ld8`` loads 4 bytes from [%r3+8], where %r3 is a multiple of 16. ``st.v2:8`` stores two words there. ``ld[%r6]:8``
loads from [%r6+8], ``ld[s]:8`` from the variable ``s``. PTX stands in angle brackets. The kernel stores all loaded
values to global memory at its end.
"""

import re

_WORD = re.compile(r"<[^>]*>|\S+")
_ACCESS = re.compile(r"(ld|st)(?:\.(v2|v4))?(?:\[(%?\w+)\])?:?(\d+)")
_BEGIN = """
.reg .pred %p<9>; .reg .b16 %h<40>; .reg .b32 %r<90>; .reg .f32 %f<40>; .reg .b64 %d<20>;
.shared .align 16 .b8 s[8192]; .shared .align 16 .b8 u[8192]; .local .align 4 .b8 l[64];
.shared .align 4 .b32 w; .shared .align 4 .b32 x; .shared .align 4 .b32 y; .shared .align 4 .b32 z;
ld.param.u64 %d0, [o]; ld.param.u64 %d1, [g]; ld.param.u32 %r9, [n];
mov.u32 %r0, %tid.x; mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.s32 %r3, %r1, %r2; mov.u32 %r4, u; add.s32 %r5, %r4, %r2;
mul.wide.u32 %d2, %r0, 2048; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2; setp.gt.s32 %p1, %r9, 5;
"""


def kernel(name: str, code: str) -> str:
    """Write the PTX of a kernel whose code is in the shorthand."""
    lines, loaded = [], list[str]()
    for word in _WORD.findall(code):
        match = _ACCESS.fullmatch(word)
        if match is None:
            lines.append(word[1:-1])
            continue
        opcode, vector, base, offset = match.groups()
        count, place = int((vector or "v1")[1]), f"[{base or '%r3'}+{offset}]"
        values = [f"%r{40 + len(loaded) + n}" if opcode == "ld" else "%r9" for n in range(count)]
        loaded += values if opcode == "ld" else []
        value = f"{{{', '.join(values)}}}" if vector else values[0]
        operands = f"{value}, {place}" if opcode == "ld" else f"{place}, {value}"
        lines.append(f"{opcode}.shared{'.' + vector if vector else ''}.u32 {operands};")
    lines += [f"st.global.u32 [%d3+{1024 + 4 * n}], {value};" for n, value in enumerate(loaded)]
    parameters = ".param .u64 o, .param .u64 g, .param .u32 n"
    return f".visible .entry {name}({parameters})\n{{{_BEGIN}{chr(10).join(lines)}\nret;\n}}\n"


#: PTX between two pairs of accesses.
_BETWEEN = [
    "st.global.u32 [%d3], %r0;",
    "atom.global.add.u32 %r10, [%d3], 1; st.global.u32 [%d3+4], %r10;",
    "atom.acq_rel.gpu.global.add.u32 %r10, [%d3], 1; st.global.u32 [%d3+4], %r10;",
    "red.release.gpu.global.add.u32 [%d3], 1;",
    "ld.acquire.gpu.global.u32 %r10, [%d4]; st.global.u32 [%d3+4], %r10;",
    "st.local.u32 [l], %r0;", "st.u32 [%d3], %r0;", "ld.u32 %r10, [%d4]; st.global.u32 [%d3+4], %r10;",
    "ld.shared.u32 %r10, [%r5]; st.global.u32 [%d3+4], %r10;", "st.shared.u32 [%r5], 1;",
    "atom.shared.add.u32 %r10, [%r5], 1; st.global.u32 [%d3+4], %r10;", "bar.sync 0;", "bar.warp.sync 0xffffffff;",
    "fence.acq_rel.gpu;", "membar.cta;", "cp.async.commit_group;", "cp.async.wait_group 0;",
    "cp.async.bulk.commit_group;", "nanosleep.u32 100;", "griddepcontrol.wait;", "griddepcontrol.launch_dependents;",
    "mbarrier.init.shared.b64 [%r5], 32;", "mbarrier.arrive.shared.b64 %d6, [%r5];",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r0};",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5]; st.global.u32 [%d3+4], %r10;",
    "prefetch.global.L2 [%d4];", "prefetch.L2 [%d4];", "prefetchu.L1 [%d4];", "discard.global.L2 [%d3], 128;",
    "applypriority.global.L2::evict_normal [%d4], 128;", "multimem.st.relaxed.sys.global.u32 [%d3], %r0;",
    "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;",
    "pmevent 1;", "shfl.sync.down.b32 %r10, %r0, 1, 31, 0xffffffff; st.global.u32 [%d3+4], %r10;",
    "@%p1 bra BEHIND; st.global.u32 [%d3], %r0; BEHIND:", "@%p1 bra BEHIND; st.shared.u32 [%r5], 1; BEHIND:",
    "@%p1 bra BEHIND; st.global.u32 [%d3], 1; bra END; BEHIND: st.global.u32 [%d3], 2; END:",
    "@%p1 st.global.u32 [%d3], 1;", "@%p1 ret;",
    *(f"cvt.rn.f32.s32 %f1, %r9; {ptx}; st.global.f32 [%d3], %f1;" for ptx in (
        "div.rn.f32 %f1, %f1, %f1", "div.full.f32 %f1, %f1, %f1", "sqrt.rn.f32 %f1, %f1", "rcp.rn.ftz.f32 %f1, %f1",
        "sqrt.approx.f32 %f1, %f1",
    )),
    *(f"cvt.rn.f64.s32 %d9, %r9; {ptx}; st.global.f64 [%d3], %d9;" for ptx in (
        "div.rn.f64 %d9, %d9, %d9", "rsqrt.approx.f64 %d9, %d9", "rsqrt.approx.ftz.f64 %d9, %d9",
    )),
    *(f"{ptx}; st.global.u32 [%d3], %r10;" for ptx in ("div.s32 %r10, %r9, %r0", "rem.u32 %r10, %r9, %r0")),
    *(f"{name} %d9, %d3, %d2; st.global.u64 [%d3], %d9;" for name in ("div.u64", "rem.s64", "mul.lo.u64")),
    "cvt.u16.u32 %h1, %r9; div.u16 %h2, %h1, %h1; st.global.u16 [%d3], %h2;",
]  # fmt: skip
_LOOP = "mov.u32 %r30, {}; LOOP: add.s32 %r30, %r30, {}; {} setp.lt.s32 %p2, %r30, {}; @%p2 bra LOOP;"
_STORE = "st.global.u32 [%d3], %r30;"
#: Loops between accesses. ptxas replaces a short one by its iterations if it counts from a constant to a constant.
_LOOPS = [
    _LOOP.format(0, 1, _STORE, "%r9"), _LOOP.format("%r0", 32, _STORE, 1024), _LOOP.format(0, 1, _STORE, 64),
    _LOOP.format(0, 1, _STORE, 4096), "@%p1 bra BEHIND; " + _LOOP.format(0, 1, _STORE, "%r9") + " BEHIND:",
    f"mov.u32 %r30, %r9; LOOP: {_STORE} shr.u32 %r30, %r30, 1; setp.ne.u32 %p2, %r30, 0; @%p2 bra LOOP;",
]  # fmt: skip
#: PTX that computes %r10, an offset in the array ``s``, which is aligned to 16 bytes.
_NUMBERS = [
    "ld.global.v2.u32 {%r11, %r12}, [%d4]; shl.b32 %r10, %r11, 4;", "ld.global.v2.u32 {%r10, %r12}, [%d4];",
    "shfl.sync.idx.b32 %r11|%p2, %r0, 0, 31, 0xffffffff; shl.b32 %r10, %r11, 4;",
    "shl.b32 %r11, %r0, 4; shfl.sync.idx.b32 %r10, %r11, 0, 31, 0xffffffff;",
    "and.b32 %r11, %r9, 3; mov.u32 %r12, 4; shl.b32 %r10, %r12, %r11;",
    "mov.u32 %r12, 8; shl.b32 %r10, %r12, %r9;", "shl.b32 %r10, %r2, %r9;", "xor.b32 %r10, %r2, 8;",
    "shl.b32 %r11, %r9, 4; xor.b32 %r10, %r2, %r11;", "neg.s32 %r10, %r2;", "rem.u32 %r10, %r2, 48;",
    "bfi.b32 %r10, %r9, 0, 4, 8;", "mul24.lo.u32 %r10, %r0, 16;", "shl.b32 %r11, %r9, 4; min.u32 %r10, %r2, %r11;",
    "shl.b32 %r11, %r9, 8; shr.u32 %r10, %r11, 2;", "setp.ne.s32 %p2, %r9, 0; selp.b32 %r10, 8, 0, %p2;",
    "mov.u32 %r10, 0; LOOP: st.global.u32 [%d3], %r10; ld.global.v2.u32 {%r10, %r12}, [%d4]; setp.gt.s32 %p2, %r12, 0; "
    "@%p2 bra LOOP;",
]  # fmt: skip
#: PTX that computes a value from halfword ``n`` and stores it to global memory.
_HALFWORD_USES = [
    "cvt.f32.f16 %f{n}, %h{n}; st.global.f32 [%d3+{place}], %f{n};",
    "cvt.u32.u16 %r2{n}, %h{n}; st.global.u32 [%d3+{place}], %r2{n};",
    "cvt.s32.s16 %r2{n}, %h{n}; st.global.u32 [%d3+{place}], %r2{n};",
    "cvt.f32.bf16 %f{n}, %h{n}; st.global.f32 [%d3+{place}], %f{n};",
    *(
        f"{name}16 %h2{{n}}, %h{{n}}, 5; st.global.b16 [%d3+{{place}}], %h2{{n}};"
        for name in ("add.s", "sub.s", "or.b", "and.b", "shl.b", "shr.u", "shr.s", "mul.lo.s", "min.u")
    ),
    "mul.wide.u16 %r2{n}, %h{n}, 5; st.global.u32 [%d3+{place}], %r2{n};",
    "add.f16 %h2{n}, %h{n}, %h{n}; st.global.b16 [%d3+{place}], %h2{n};",
]


def _use_halfwords(load: str, use: str) -> str:
    return f"<{load} {' '.join(use.format(n=n, place=4 * n) for n in (0, 1))}>"


#: Code that computes %r6, a multiple of 4 that need not be one of 8.
_WORDS = "<shl.b32 %r10, %r0, 2; add.s32 %r6, %r10, %r1;>"
_QUAD = "ld.shared.v4.u32 {%r30, %r31, %r32, %r33}, [%r3];"
_LOAD_BEHIND = "<mov.u32 %r30, 1; @%p1 bra BEHIND; ld.shared.u32 %r30, [%r3+8]; BEHIND: st.global.u32 [%d3], %r30;>"
#: PTX that computes %r6, which is 8 modulo 16; ptxas recognizes that in some cases only.
_REMAINDERS = [
    "add.s32 %r6, %r3, 8;", "sub.s32 %r6, %r3, 8;", "mad.lo.s32 %r10, %r9, 16, %r3; add.s32 %r6, %r10, 8;",
    "or.b32 %r6, %r3, 8;", "xor.b32 %r6, %r3, 8;", "sub.s32 %r10, 8, %r2; add.s32 %r6, %r10, %r1;",
    "shl.b32 %r10, %r9, 4; add.s32 %r11, %r10, 8; add.s32 %r6, %r3, %r11;",
    "mad.lo.s32 %r10, %r9, 16, 8; add.s32 %r6, %r10, %r3;",
    "shl.b32 %r10, %r0, 2; add.s32 %r11, %r10, 2; mad.lo.s32 %r6, %r11, 4, %r1;",
    "add.s32 %r10, %r3, 8; add.s32 %r11, %r3, 24; selp.b32 %r6, %r10, %r11, %p1;",
    "add.s32 %r6, %r3, 8; @%p1 bra BEHIND; st.global.u32 [%d3], %r0; add.s32 %r6, %r3, 24; BEHIND:",
    "add.s32 %r6, %r3, 8; LOOP: add.s32 %r6, %r6, 16; st.global.u32 [%d3], %r6; setp.lt.s32 %p2, %r6, %r9; "
    "@%p2 bra LOOP;",
]  # fmt: skip
_UNALIGNED = "<shl.b32 %r11, %r9, 2; add.s32 %r6, %r11, %r1;>"
_TWICE = "<add.s32 %r12, %r2, {}; mad.lo.s32 %r6, %r12, 4, %r1; mad.lo.s32 %r7, %r2, 4, %r1;>"
_TURNED = "<mad.lo.s32 %r7, %r2, 4, %r1; add.s32 %r12, %r2, 1; mad.lo.s32 %r6, %r12, 4, %r1;>"
#: Accesses through several registers with a constant difference, which ptxas recognizes in some cases only.
_THROUGH_SEVERAL = [
    *(
        f"<{ptx}> {kind}0 {kind}[%r7]:4"
        for kind in ("ld", "st")
        for ptx in (
            "mov.u32 %r7, %r3;", "add.s32 %r7, %r1, %r2;", "mad.lo.s32 %r7, %r0, 16, %r1;", "or.b32 %r7, %r3, 16;",
            "mov.u32 %r8, s; mov.u32 %r6, %tid.x; shl.b32 %r12, %r6, 4; add.s32 %r7, %r12, %r8;",
            "mov.u32 %r7, %r3; @%p1 mov.u32 %r7, %r5;",
        )
    ),
    "<add.s32 %r7, %r3, 4; sub.s32 %r8, %r3, 4;> ld0 ld[%r7]:0 ld[%r8]:12 ld12",
    "<add.s32 %r7, %r3, 4; add.s32 %r8, %r7, 4;> st0 st[%r7]:0 st[%r8]:0 st12",
    "<add.s32 %r7, %r3, 4294967292;> ld[%r7]:4 ld4", "<add.s32 %r6, %r2, 16; add.s32 %r7, %r6, %r1;> ld[%r7]:0 ld20",
    "<add.s32 %r6, %r0, 1; mad.lo.s32 %r8, %r6, 16, %r1;> ld[%r8]:0 ld20",
    "<sub.s32 %r10, %r5, %r2; add.s32 %r6, %r5, 16; sub.s32 %r7, %r6, %r2;> ld[%r7]:0 ld[%r10]:20",
    "<mul.wide.u32 %d9, %r0, 16; mov.u64 %d8, s; add.s64 %d7, %d8, %d9; add.s64 %d6, %d7, 4;> ld[%d7]:0 ld[%d6]:0",
    f"{_UNALIGNED} <mov.u32 %r7, %r6;> ld.v4[%r7]:0 ld[%r6]:16 ld[%r6]:20",
    f"{_UNALIGNED} <mov.u32 %r7, %r6;> ld[%r7]:16 ld[%r7]:20 ld.v4[%r6]:0",
    f"{_UNALIGNED} <mov.u32 %r7, %r6;> st.v4[%r6]:0 st[%r7]:16 st[%r7]:20",
    f"{_UNALIGNED} <add.s32 %r7, %r6, 16;> ld.v4[%r6]:0 ld[%r7]:0 ld[%r7]:4",
    f"{_UNALIGNED} <add.s32 %r7, %r6, 4;> ld.v4[%r7]:0 ld[%r7]:16 ld[%r7]:20",
    f"{_TWICE.format(1)} ld[%r7]:0 ld[%r6]:0", f"{_TWICE.format(1)} ld[%r6]:0 ld[%r7]:32 ld[%r7]:36",
    f"{_TWICE.format(1)} ld[%r7]:32 ld[%r7]:36 <bar.sync 0;> ld[%r6]:0",
    f"{_TWICE.format(1)} st[%r7]:32 st[%r7]:36 <bar.sync 0;> ld[%r6]:0", f"{_TWICE.format(1)} ld[%r7]:32 ld[%r7]:36",
    f"{_TURNED} ld[%r7]:0 ld[%r6]:0", f"{_TURNED} ld[%r6]:0 ld[%r7]:32 ld[%r7]:36", f"{_TURNED} ld[%r6]:28 ld[%r6]:32",
    f"{_TURNED} st[%r7]:32 st[%r7]:36 st[%r6]:0",
    f"{_TWICE.format(2)} ld[%r7]:8 ld[%r6]:4", f"{_TWICE.format(2)} ld[%r6]:0 ld[%r7]:0 ld[%r7]:4 ld[%r6]:4",
]  # fmt: skip
#: Kernels: orders and widths, alignment proven by wide accesses, unused words, halfwords, paths, loops, variables.
KERNELS = [
    "st0 st4 st64 st8 st12", "st0 st64 st4", "st0 st16 st4 st20", "st0 st8 st4", "st0 st4 st16 st20 st8 st12",
    "st0 st0 st4", "st0 st4 st8 st4 st12", "st0 st[%r5]:0 st4", "st.v2:0 st8 st12", "st0 st4 st.v2:8",
    "st.v2:0 st.v2:8", "st8 st.v2:0", "st4 st.v2:8 st0", "st0 st.v2:8 st4", "st12 st8 st.v2:0", "st.v2:8 st0 st4",
    "st.v2:0 st16 st8 st12", "st.v2:0 st4 st8", "st.v2:0 st8 st.v2:16 st.v2:24",
    "st0 <st.shared.u64 [%r3+8], %d1;> st4",
    "ld[%r2]:0 ld[%r2]:4 ld[%r2]:8 ld[%r2]:12", "<mul.lo.u32 %r10, %r0, 8;> ld[%r10]:0 ld[%r10]:4 ld[%r10]:8",
    "ld0 ld4 ld64 ld8 ld12", "ld.v2:0 ld8", "ld8 ld.v2:0", "ld.v2:0 ld8 ld12", "ld.v2:0 ld12", "ld.v2:0 ld4",
    "ld.v4:0 ld4", "ld0 ld0 ld4", "ld.v2:0 ld.v2:0", "ld4 ld.v2:8 ld24", "ld.v2:0 ld8 ld.v2:16 ld24 ld28",
    "ld0 ld[%r5]:0 ld4",
    f"{_WORDS} ld.v4[%r6]:0 ld[%r6]:16 ld[%r6]:20 ld[%r6]:24 ld[%r6]:28", f"{_WORDS} ld.v2[%r6]:8 ld[%r6]:0 ld[%r6]:4",
    f"{_WORDS} ld.v2[%r6]:4 ld[%r6]:12 ld[%r6]:16", f"{_WORDS} st.v2[%r6]:8 <bar.sync 0;> ld[%r6]:0 ld[%r6]:4",
    f"{_WORDS} st.v2[%r6]:0 st[%r6]:8 st[%r6]:12",
    f"{_WORDS} <shl.b32 %r13, %r9, 3; add.s32 %r14, %r13, %r1;> st[%r14]:0 st[%r14]:8 st[%r14]:4 st[%r14]:12",
    f"<{_QUAD} st.global.u32 [%d3], %r30; st.global.u32 [%d3+4], %r31; st.global.u32 [%d3+8], %r32;>",
    f"<{_QUAD} st.global.u32 [%d3], %r30; st.global.u32 [%d3+4], %r33;>", f"<{_QUAD} st.global.u32 [%d3], %r31;> ld16",
    *(_use_halfwords("ld.shared.b16 %h0, [%r3]; ld.shared.b16 %h1, [%r3+2];", use) for use in _HALFWORD_USES),
    "<ld.shared.u16 %r30, [%r3]; ld.shared.u16 %r31, [%r3+2]; st.global.u32 [%d3], %r30; st.global.u32 [%d3+4], %r31;>",
    _use_halfwords("ld.shared.v2.u16 {%h0, %h1}, [%r3];", _HALFWORD_USES[1]),
    f"<{' '.join(f'st.shared.b16 [%r3+{place}], %h1;' for place in (0, 8, 2, 4, 6))}>",
    f"ld0 ld4 {_LOAD_BEHIND} ld12", f"{_LOAD_BEHIND} ld12",
    *(f"{kind}0 {kind}4 <{ptx}> {kind}8 {kind}12" for ptx in _BETWEEN for kind in ("ld", "st")),
    *(f"<st.shared.u32 [%r5], 1;> ld0 ld4 <{ptx}> ld8 ld12" for ptx in _LOOPS),
    # paths that pass one load, or another one
    *(
        f"<{' '.join(f'mov.u32 %r{40 + n}, {n};' for n in range(4))}> {code}"
        for code in (
            "<@%p1 bra A;> ld0 <A: setp.gt.s32 %p2, %r9, 9; @%p2 bra B;> ld4 <B:>",
            "ld0 <@%p1 bra A;> ld8 <A: setp.gt.s32 %p2, %r9, 9; @%p2 bra B;> ld12 <B:>",
            "ld0 ld4 <@%p1 bra A;> ld8 <A: setp.gt.s32 %p2, %r9, 9; @%p2 bra B;> ld12 <B:>",
            "ld32 <@%p1 bra A;> ld8 <A: setp.gt.s32 %p2, %r9, 9; @%p2 bra B;> ld12 <B:>",
            "<@%p1 bra A;> ld0 <bra B; A:> ld4 <B:>",
        )
    ),
    "ld[w]:0 ld[x]:0", "ld[x]:0 ld[w]:0", "ld[x]:0 ld[y]:0", "ld[w]:0 ld[x]:0 ld[y]:0 ld[z]:0", "st[w]:0 st[x]:0",
    "st[y]:0 ld[w]:0 ld[x]:0", "<mov.u32 %r6, w;> ld[%r6]:0 ld[x]:0",
    "<mov.u32 %r10, w; add.s32 %r6, %r2, %r10; mov.u32 %r11, x; add.s32 %r7, %r2, %r11;> ld[%r6]:0 ld[%r7]:0",
    *(f"<{ptx} add.s32 %r6, %r10, %r1;> ld[%r6]:0 ld[%r6]:4 ld[%r6]:8 ld[%r6]:12" for ptx in _NUMBERS),
    *(f"<{ptx}> ld[%r6]:8 ld[%r6]:12 ld[%r6]:16 ld[%r6]:20" for ptx in _REMAINDERS),
    *_THROUGH_SEVERAL,
]  # fmt: skip
