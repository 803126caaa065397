"""Kernels that end with a store of a value from shared memory, by the threads of a guard."""

from collections.abc import Iterable
from itertools import product

_BEGIN = """
.reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<24>; .reg .f32 %f<3>; .reg .b64 %d<8>; .shared .align 16 .b8 s[8192];
ld.param.u64 %d0, [o]; ld.param.u64 %d1, [g]; ld.param.u32 %r9, [n]; mov.u32 %r0, %tid.x; mov.u32 %r1, s;
mad.lo.u32 %r3, %r0, 4, %r1; xor.b32 %r4, %r3, 64; mul.wide.u32 %d2, %r0, 16; add.s64 %d3, %d0, %d2;
add.s64 %d4, %d1, %d2; st.shared.u32 [%r3], %r0; bar.sync 0; setp.lt.u32 %p1, %r0, %r9; setp.gt.u32 %p2, %r0, 40;
ld.shared.u32 %r10, [%r4];
"""
_LOAD = "ld.shared.u32 %r10, [%r4];"
_FLOAT, _SECOND = "mov.b32 %f1, %r10;", "ld.shared.u32 %r20, [%r4+128];"
#: Operation on the loaded value %r10, the stored value, and its type.
_OPERATIONS = [
    ("", "%r10", "u32"), ("", "%r10", "u8"), ("", "{%r10, %r0}", "v2.u32"), (_SECOND, "{%r10, %r20}", "v2.u32"),
    ("", "{%r10, %r10, %r10, %r10}", "v4.u32"), (f"{_SECOND} add.u32 %r11, %r10, %r20;", "%r11", "u32"),
    *((f"{name} %r11, %r10, 12;", "%r11", "u32") for name in (
        "add.u32", "sub.u32", "and.b32", "or.b32", "xor.b32", "shl.b32", "shr.u32", "shr.s32", "mul.lo.u32",
        "mul.hi.u32", "min.u32", "max.s32", "mul24.lo.u32", "rem.u32", "div.u32")),
    *((f"{name} %r11, %r10;", "%r11", "u32") for name in (
        "not.b32", "abs.s32", "clz.b32", "brev.b32", "bfind.u32", "mov.u32", "neg.s32", "popc.b32")),
    *((f"{_FLOAT} {name} %f2, %f1, 0f3F400000;", "%f2", "f32") for name in (
        "add.f32", "sub.f32", "mul.f32", "min.f32", "max.f32", "div.full.f32", "div.rn.f32")),
    *((f"{_FLOAT} {name} %f2, %f1;", "%f2", "f32") for name in (
        "neg.f32", "abs.f32", "ex2.approx.ftz.f32", "rcp.approx.ftz.f32", "sin.approx.f32", "tanh.approx.f32",
        "ex2.approx.f32", "lg2.approx.f32", "sqrt.rn.f32")),
    *((f"{name} %r11, %r10, {other};", "%r11", "u32") for name, other in (
        ("add.u32", "%r0"), ("add.u32", "%r9"), ("mul.lo.u32", "%r10"), ("xor.b32", "%r0"), ("shl.b32", "%r0"))),
    ("mad.lo.u32 %r11, %r10, 5, 9;", "%r11", "u32"), ("mad.lo.u32 %r11, %r10, 5, %r0;", "%r11", "u32"),
    ("bfe.u32 %r11, %r10, 3, 5;", "%r11", "u32"), ("prmt.b32 %r11, %r10, 0, 0x1032;", "%r11", "u32"),
    ("selp.u32 %r11, %r10, 5, %p2;", "%r11", "u32"),
    ("add.u32 %r11, %r10, 7; shl.b32 %r12, %r11, 2; xor.b32 %r13, %r12, 5;", "%r13", "u32"),
    (f"{_FLOAT} max.f32 %f2, %f1, 0f00000000;", "%f2", "f32"),
    (f"{_FLOAT} fma.rn.f32 %f2, %f1, 0f3F400000, 0f40000000;", "%f2", "f32"),
    (f"{_FLOAT} cvt.rn.f16.f32 %h1, %f1;", "%h1", "b16"), (f"{_FLOAT} cvt.rn.bf16.f32 %h1, %f1;", "%h1", "b16"),
    (f"{_FLOAT} cvt.rzi.s32.f32 %r11, %f1;", "%r11", "u32"), (f"{_FLOAT} cvt.f64.f32 %d7, %f1;", "%d7", "b64"),
    ("cvt.rn.f32.s32 %f2, %r10;", "%f2", "f32"), ("cvt.u16.u32 %h1, %r10;", "%h1", "u16"),
    ("cvt.u64.u32 %d7, %r10;", "%d7", "u64"), ("cvt.s64.s32 %d7, %r10;", "%d7", "u64"),
    ("mul.wide.u32 %d7, %r10, 12;", "%d7", "u64"), ("mov.b64 %d7, {%r10, %r10};", "%d7", "u64"),
    ("mov.u32 %r12, 12; mul.lo.u32 %r11, %r10, %r12;", "%r11", "u32"),
    ("mov.u32 %r12, 0; @%p2 ld.global.u32 %r12, [%d4]; add.u32 %r11, %r10, %r12;", "%r11", "u32"),
]  # fmt: skip
#: Code between the operation and the last store.
_BETWEEN = (
    "", "st.global.u32 [%d4], %r0;", "@%p2 st.global.u32 [%d4+4], %r0;", "@%p1 st.global.u32 [%d4+4], %r0;",
    "st.global.u32 [%d4], %r10;", "bar.sync 0;", "st.shared.u32 [%r3+2048], %r0;",
    "@%p2 st.global.u32 [%d4], %r0; @%p2 st.global.u32 [%d4+4], %r9;", "@%p2 red.global.add.u32 [%d4], %r0;",
    "@%p1 st.global.u32 [%d4], %r0; @%p1 st.global.u32 [%d4+4], %r9;",
    "@%p2 st.global.u32 [%d4], %r0; @!%p2 st.global.u32 [%d4+4], %r9;",
    "@%p2 st.shared.u32 [%r3+2048], %r0; @%p2 st.shared.u32 [%r3+2056], %r9;",
    "@%p2 st.global.u32 [%d4], %r0; st.global.u32 [%d4+8], %r0; @%p2 st.global.u32 [%d4+4], %r9;",
)  # fmt: skip
_STORES = ("@%p1 st.global.{} [%d3], {};", "@%p1 st.shared.{} [%r3+4096], {};", "st.global.{} [%d3], {};")


#: Byte offsets of four loads with one base. Neighbours merge if the address is aligned.
_OFFSETS = ((0, 512, 1024, 1536), (0, 8, 16, 24), (0, 16, 32, 48), (0, 8, 512, 520), (8, 0, 24, 16))
#: The loads whose values the last store takes. A store before it takes the others.
_LAST = ((2, 3), (1, 3), (1, 2))
_ADDRESSES = ("xor.b32 %r4, %r3, 64;", "mad.lo.u32 %r4, %r0, 16, %r1;")


def write_kernels() -> dict[str, str]:
    """Write the PTX of kernels with one load for the last store, by name."""
    choices = [*product(_OPERATIONS, [""], _STORES[:1]), *product(_OPERATIONS[:8], _BETWEEN, _STORES)]
    return _write_entries(
        [
            f"{_BEGIN} {operation} {between} {store.format(kind, value)}"
            for (operation, value, kind), between, store in choices
        ]
    )


def write_groups() -> dict[str, str]:
    """Write the PTX of kernels with four loads of a word or two, half of them for the last store, by name."""
    codes = []
    for address, offsets, last, guard, words in product(_ADDRESSES, _OFFSETS, _LAST, ("", "@%p1 ", "@%p2 "), (1, 2)):
        registers = [[f"%r{10 + words * load + word}" for word in range(words)] for load in range(4)]
        step = 1 if words == 2 else 2
        loads = "".join(
            f"ld.shared.{'v2.' * (words - 1)}u32 {{{', '.join(names)}}}, [%r4+{offset // step}];"
            for names, offset in zip(registers, offsets, strict=True)
        )
        first, second = (
            "{" + ", ".join(name for load in range(4) if (load in last) is wanted for name in registers[load]) + "}"
            for wanted in (False, True)
        )
        kind = f"v{2 * words}.u32"
        begin = _BEGIN.replace(_ADDRESSES[0], address).replace(_LOAD, loads)
        codes.append(f"{begin} {guard}st.global.{kind} [%d4], {first}; @%p1 st.global.{kind} [%d3], {second};")
    return _write_entries(codes)


def _write_entries(codes: Iterable[str]) -> dict[str, str]:
    parameters = ".param .u64 o, .param .u64 g, .param .u32 n"
    return {
        f"k{number}": f".visible .entry k{number}({parameters})\n{{{code} ret;\n}}\n"
        for number, code in enumerate(codes)
    }
