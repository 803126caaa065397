"""Unsupported instructions fail their kernel only when a thread reaches them; errors name the lines."""

import re

import numpy as np
import pytest

from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import Argument
from ptxcount.util.errors import LaunchError, PtxSyntaxError, UnsupportedInstructionError
from tests.ptxcount import sources

#: The first kernel stores 7; before that, it executes `code` if ``reach`` is not 0. The second kernel stores 9.
_MODULE = """.version 8.0
.target sm_90, texmode_independent,
    debug
.address_size 64
.global .u32 known = 5;
{declarations}
.visible .entry snippet(.param .u64 out, .param .u32 reach)
{{
.reg .pred %p<9>;
.reg .b32 %r<9>;
.reg .f32 %f<9>;
.reg .b64 %rd<9>;
.loc 1 3 1
ld.param.u32 %r0, [reach];
setp.le.u32 %p0, %r0, 0;
@%p0 bra AROUND;
.loc 1 7 1
{code}
AROUND:
.loc 1 9 1
ld.param.u64 %rd0, [out];
st.global.u32 [%rd0], 7;
ret;
}}
.visible .entry other(.param .u64 out)
{{
.reg .b64 %rd<9>;
ld.param.u64 %rd0, [out];
st.global.u32 [%rd0], 9;
ret;
}}
.file 1 "kernel.cu"
"""
_FUNC = ".func (.param .b32 result) f(.param .b32 x)\n{ .reg .b32 %r<2>; ld.param.b32 %r1, [x]; ret; }\n"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 0"
_SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_UNKNOWN = "is neither a declared register nor a supported special register"
#: Declarations of the module, code of the kernel, and reason of the error. The code ends with the refused instruction.
DECLARED = [
    (".global .texref t;", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2}];", "t: .texref is not supported"),
    (".shared .b256 wide[2];", "mov.u32 %r1, wide;", "wide: .b256 is not supported"),
    (".global .u32 p = generic(known);", "ld.global.u64 %rd1, [p];", "p: its initial value ')'"),
    (".global .f16 big = 1e9;", "ld.global.b16 %r1, [big+0];", "big: its initial value 1000000000.0"),
    (".global .u8 two[2] = {1, 2, 3};", "mov.u64 %rd1, two;", "two: more initial values than its 2"),
    (".global .u32 many, more;", "mov.u64 %rd1, more;", "more is not declared as a variable"),
    (".alias g, f;\n.weak .func g(.param .b32 x);", "mov.u64 %rd1, g;", "g is not declared as a variable"),
    (".weak " + _FUNC, "{ .param .b32 a; st.param.b32 [a], %r1;\ncall.uni f, (a); }",
     "it has 0 results and 1 argument; the function 'f' has 1 result and 1 argument"),
    (_FUNC, "call.uni (%r1), f, (%r1);", "a result or an argument is no variable"),
    (_FUNC.partition("{")[0] + ";", "call.uni (%r1), f, (%r1);", "no function 'f'; one file must"),
]  # fmt: skip
#: Code without declarations, and reason of the error.
REFUSED = [
    ("mov.u32 %r1, %reserved_smem_offset_0;", f"%reserved_smem_offset_0 {_UNKNOWN}"),
    ("mov.u32 %r1, %r77;", f"%r77 {_UNKNOWN}"),
    ("vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;", "%r2.b0: selectors of video instructions (.b0, .h1) are not supported"),
    ("ld.shared.u32 %r1, [%reserved_smem_offset_1];",
     "an operand is [%reserved_smem_offset_1] (no register of this name is declared)"),
    ("st.global.u32 [%x9+4], %r1;", "[%x9+4] (no register of this name is declared)"),
    ("add.u32 %x9, %r1, 1;", "its result is %x9 (no register of this name is declared)"),
    ("ld.global.u32 %r1, 5;", "an operand is 5"),
    ("ld.shared %r1, [%r2];", "its types are none; it needs 1 type"), ("brx.idx;", "it needs a table of this kernel"),
    ("atom.global.add.u32;", "it has 0 operands"),
    ("add.u32 %r1, {%r2, %r3}, 5;", "an operand is {%r2, %r3}; it must be one value of .u32"),
    ("@%q9 mov.u32 %r1, 5;", "'%q9' is not a predicate register"), ("@%q9 ret;", "'%q9' is not a predicate register"),
    ("mov.b32 %r1, {%r2};", "a .b32 cannot be split into 1 part;"),
    ("mov.f32 %f1, {%r1, %r2};", "a .f32 cannot be split into 2 parts;"),
    ("mov.b16 {%r1, %r2, %r3, %r4}, %r5;", "a .b16 cannot be split into 4 parts; it needs"),
    (".reg .b128 %q<3>;\nld.global.u64 %q1, [%rd1];", "register %q1 is .b128"),
    (".reg .v4 .f32 %v;\nadd.f32 %f1, %v.x, 0f00000000;", f"%v.x {_UNKNOWN}"),
    ("cp.async.bulk.shared::cta.bulk_group [%rd1], [%r2], 16;",
     "its state spaces are .shared::cta; they must be those of the target and of the source"),
    ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2];", "it has 2 operands; it needs 3"),
    ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd2], 16;",
     "it has 3 operands; it needs 4"),
    ("cp.async;", "it has 0 operands; it needs 3 or 4"),
    ("call.uni (r), malloc, (size);", "r is not declared as a variable"),
    ("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q7;",
     "an operand of .b128 is %q7 (no register of"),
    ("mbarrier.init.shared.b64 [%r2], 0;", "the count is 0; allowed are 1 to 1048575"),
    ("mbarrier.init.shared.b64 [%r2], 1048576;", "the count is 1048576; allowed are 1 to 1048575"),
    ("mov.u32 %r1, 16;\nbarrier.sync %r1;", "the barrier is 16; allowed are 0 to 15"),
    ("bar.arrive 1, 33;", "it expects 33 threads; the number must be a multiple of 32"),
    ("wgmma;", "it needs one shape"), ("alloca.u32 %r1;", "it has 1 operand; it needs 2 or 3"),
    ("createpolicy.fractional.L2::evict_last.b64;", "it has 0 operands; it needs 1, 2 or 4"),
    ("cp.async.ca.shared.global [%r1], [%rd2], 5;", "the copied size is 5; allowed are 4, 8, 16"),
    ("cp.async.ca.shared.global [%r1], [%rd2], 0f7FC00000;", "the copied size is nan; it must be a whole number"),
    ("cp.async.wait_group 0f7F800000;", "the number of groups is inf; it must be a whole number"),
    ("bar.warp.sync 0f7FC00000;", "nan does not fit .u32"),
    ("shl.b32 %r1, %r1, 0f7FC00000; ld.shared.u32 %r1, [%r1];", "nan does not fit .u32"),
    ("cp.async.ca.shared.global [%r1], [%rd2], 8, 9;", "is 9; at most 8 bytes"),
    ("st.async.release.gpu.global.u32 [%rd1], %r1;", "it writes global memory"),
    ("red.async.mmio.release.sys.global.add.u32 [%rd1], %r1;",
     "without .mbarrier::complete_tx::bytes, it writes global memory"),
    ("elect.sync %r1, -1;", "it has 1 result; it needs 2"),
    ("bar.red.xor.pred %p1, 0, %p1;", "it needs one of .sync, .arrive, .red.popc,"),
    ("bar.red.popc.pred %p1, 0, %p1;", "its type is .pred; with .popc, it must be .u32"),
    ("bar.red.and.pred %r1, 0, %p1;", "register %r1 is .b32, which does not match .pred"),
    ("barrier.cta.red.or.gpu.pred %p1, 0, %p1;", "the modifier .gpu is not allowed"),
    ("bar.red.popc.u32 %r1, 0;", "it has 2 operands; it needs 3 or 4"),
    ("h: .callprototype (.param .b32 _) _ ();\ncall (%r1), %rd1, (), h;", "no function with this sig"),
    ("table: .branchtargets AROUND;\nbrx.idx %r0, table;", "it needs a table of this kernel, and an index within it"),
    ("brx.idx %r0, table;", "it needs a table of this kernel"),
    ("bra NOWHERE;", "its target is NOWHERE; it must be a label of this kernel"),
    ("frobnicate.now %r1;", "ptxcount has no such instruction"),
    ("tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd1], 1;",
     "the modifier .swizzle_atomicity is not allowed; allowed are .b1024,"),
    ("cp.async.bulk.prefetch.L2.global [%rd1];", "it has 1 operand; it needs 2 or 3"),
    (f"{_SPARSE} {{%f1}}, %rd1, %rd2, 0, 0, 1, 1, 1;", "its matrix d has 1 register; it needs 4"),
    (f"{_SPARSE} {{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, %rd2, 0, 0, 1, 1, 1;",
     "its matrix a has 2 registers; it needs 4"),
    (f"{_MMA} {{%f1, %f2, %f3, %f4}}, {{%r1, %r2, %r3, %r4}}, {{%r5}}, {{%f1, %f2, %f3, %f4}};",
     "its matrix b has 1 register; it needs 2"),
    ("cvt.rn.s32.f32 %r1, %f1;", "a conversion to integers needs .rni, .rzi, .rmi or .rpi"),
    ("cvt.rn.rz.f32.f64 %f1, %rd1;", "it has .rn, .rz; at most one of these is allowed"),
    ("div.rz.approx.f32 %f1, %f2, %f3;",
     "for .f32, ptxcount has div.rz, div.rm, div.rp, div.rn, div.approx, div.full; .ftz, .sat may follow"),
    ("ld.global.L3::cache_hint.u32 %r1, [%rd1], %rd2;", "L3::cache_hint is not"),
    ("barrier.sync.gpu %r1;", "the modifier .gpu is not allowed; allowed are .aligned, .cta,"),
    ("barrier.cluster.arrive.gpu;", "the modifier .gpu is not allowed; allowed are .aligned, .arrive, .relaxed, .rel"),
    ("barrier.cluster.wait.release;", "the modifier .release is not allowed; allowed are .acquire, .aligned, .wait"),
    ("barrier.cluster.arrive 0;", "it has 1 operand; it needs 0"),
    ("alloca.f32 %r1, 8;", "its type is .f32; allowed are .u32, .u64"),
    ("alloca.u32.u32 %r1, 8;", "its type is .u32, .u32; allowed are .u32, .u64"),
    ("cvt.u16x2.s32 %r1, %r2;", "the modifier .u16x2 is not allowed"),
    ("mov.u32.u32 %r1, %r2;", "its types are .u32, .u32; it needs 1 type"),
    ("set.lt.u32.u32 %r1|%r2, %r3, %r4;", "it has 2 results; at most 1 is allowed"),
    ("ld.global.v4.u64 {%rd1, %rd2, %rd3}, [%rd4];", "the vector has 3 elements; it needs 4"),
    ("ld.global.v2.u32 %r1, [%rd4];", "the vector has 1 element; it needs 2"),
    ("st.global.u32 [%rd4], {%r1, %r2};", "the vector has 2 elements; it needs 1"),
    ("st.global.u32 [%rd4], [%rd5];", "an element is [%rd5]; it must be a register or a number"),
    ("cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2}, %r2;", "it has 2 numbers; it needs 4"),
    ("cvt.rs.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", "its forms are cvt.rs{.relu}.satfinite."),
    ("add.s32 %r1, %r2;", "it has 2 operands; it needs 3"),
    ("mbarrier.arrive.shared.b64 %rd1;", "it has 1 operand; it needs 2 or 3"),
    ("tld4.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", "it needs one of .r, .g, .b, .a"),
    ("suld.b.2d.b32.clamp %r1, [%rd1, {%r1}];", "it has 1 coordinate; it needs 2"),
    ("tex.cube.v4.f32.f32 %f1, %f2;", "it needs one of .1d, .2d, "),
    ("tex.2d.v2.f32.f32 %f1, %f2;", "the modifier .v2 is not allowed"),
    ("tex.2d.v4.f32.f64 %f1, %f2;", "its types are .f32, .f64; texels and"),
    ("tld4.r.1d.v4.f32.f32 %f1, %f2;", "the modifier .1d is not allowed"),
    ("tex.level.2d.v4.f32.s32 %r1;", "it has 1 operand; it needs 2, 3 or 4"),
    ("add.s32 %rd1, %r2, %r3;", "register %rd1 is .b64, which does not match .s32"),
    ("add.s32 5, %r2, %r3;", "its result is 5; it must be a register"),
    ("mov.u32 %r1, (3 << 2) ^ ~1;", "expected ')', found '<'"),
    ("st.const.u32 [%rd1], 5;", "constant memory is read-only"),
    ("atom.const.add.u32 %r1, [%rd1], 5;", "constant memory has no atomics"),
    ("wgmma.mma_async.sync.aligned.m32n8k16.f32.f16.f16;", "m is 32; it must be 64"),
    ("wgmma.mma_async.m64n8k16.f32.f16.f16.row;", "the modifier .row is not allowed; allowed are .aligned, "),
    ("wgmma.mma_async.m64n8k16.f32;", "its types are .f32; they must be those of d, a and b"),
    ("wgmma.mma_async.m64n8k32.s32.s8;", "its types are .s32, .s8; they must be those of d, a and b"),
    ("add.b32 %r1, %r2, %r3;", ".b32 is not allowed; its types are .bf16, .f16,"),
    ("addc.cc.f32 %f1, %f1, %f2;", "with one type: .u32, .s32, .u64 or .s64"),
    ("atom.global.add.f16 %r1, [%rd1], 5;", ".add does not exist for .f16; allowed are .add.noftz,"),
    *((f"{form}.{name}.b32 [%rd1], [%rd2], 5;", f"{name} does not exist for .b32; allowed are .and, .or, .xor")
      for form in ("red.global", "cp.reduce.async.bulk.global.shared::cta.bulk_group") for name in ("cas", "exch")),
    *((f"{_WGMMA}, {numbers};", f"its last operands are {numbers}; they must be two signs, 1 or -1, and then")
      for numbers in ("2, 1", "1, 0, 0, 0", "1, -1, 0, 2")),
    ("bar.warp.arrive 5;", "its form is bar.warp.sync"),
    ("call.uni (r), malloc, (size, size);", "malloc has 2 arguments; it needs 1"),
    ("call.uni (r), malloc;", "malloc has 0 arguments; it needs 1"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.u32 [%rd1], [%r2], 16;", "it has 0 operations"),
    ("cvt.bf16.f32 %r1, %f1;", "from .f32 to .bf16, it needs one of .rn, .rz, .rm, .rp"),
    ("ld.global.shared.u32 %r1, [%rd1];", "it has .global, .shared; at most one of these is allowed"),
    ("ld.global.v8.u64 %r1, [%rd1];", "it accesses 64 bytes per thread; at most 32 are allowed"),
    ("ldmatrix.sync.aligned.m8n8.x2.shared.b8 {%r1, %r2}, [%r2];",
     "its shape and type are .m8n8, .b8; allowed are .m8n8.b16, "),
    ("mbarrier.try_wait.foo.b64 %p1, [%r1], %rd1;", "its operation is .try_wait, .foo; ptxcount"),
    ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 %f1, %f1, %f1, %f1;", "its layouts are .row, .row;"),
    ("redux.sync.mul.u32 %r1, %r2, -1;", "its forms are redux.sync.{and,or,xor}.b32, redux.sync.{add,min,max}.{u32,"),
    ("set.lt.u64.u32 %rd1, %r1, %r2;", "its result is .u64; allowed are .u32, .s32,"),
    ("setp.foo.u32 %p1, %r1, %r2;", "it needs one of .eq, .ne,"),
    ("st.bulk.shared::cta [%r1], 8, 1;", "the value is 1; it must be 0"),
    ("suld.b.2d.f32 {%r1}, [%rd1, {%r1, %r2}];", "its type is .f32; allowed are .b8, .b16, .b32, .b64"),
    ("tcgen05.alloc.cta_group::1.b32 [%r1], 32;", "it needs .aligned, .sync"),
    ("tcgen05.cp.cta_group::1.32x128b [%r1], %rd1;", "its shape is .32x128b; allowed are .128x256b,"),
    ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r2], %r3;", "second half is %r3; it must be a whole number"),
    ("tcgen05.mma.cta_group::1.kind::mxf4 [%r1], %rd1, %rd2, %r3, %p1;", ".kind::mxf4 needs .block_scale"),
    ("tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;", ".ws needs .cta_group::1"),
    ("tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], %r1, 1;", "the ordinal is %r1; it must be a whole"),
    ("wmma.load.sync.aligned.row.m16n16k16.f16 {%r1}, [%rd1];", "it needs one of .a, .b, .c, .d"),
    *((code, "which has no multicast addresses; use ld,") for code in (
        "multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;",
        "multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd1];",
        "multimem.st.relaxed.sys.global.u32 [%rd1], %r1;",
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], %r3;",
        "multimem.st.async.b32 [%rd1], %r1, [%r2];",
    )),
    *((code, "%r0 has 32 bits, but an address of this memory has 64") for code in (
        "ld.global.u32 %r1, [%r0];", "ld.u32 %r1, [%r0+4];", "ld.const.u32 %r1, [%r0];", "st.global.u32 [%r0], 5;",
        "red.global.add.u32 [%r0], 5;", "atom.add.u32 %r1, [%r0], 5;",
    )),
    *((code, " cvt.rn.satfinite{.relu}.") for code in (
        ".reg .b16 %c;\ncvt.rn.e4m3x2.f32 %c, %f1, %f2;", ".reg .b16 %c;\ncvt.rn.relu.e5m2x2.f16x2 %c, %r2;",
        ".reg .b8 %c;\ncvt.rn.relu.e2m1x2.f32 %c, %f1, %f2;", ".reg .b16 %c;\ncvt.rn.e2m3x2.f32 %c, %f1, %f2;",
    )),
]  # fmt: skip


def _run(text: str, entry: str, *arguments: np.generic, threads: int = 1) -> int:
    out = np.zeros(1, np.uint32)
    execute_kernel(text, entry, (1, 1, 1), (threads, 1, 1), [out, *arguments])
    return int(out[0])


@pytest.mark.parametrize(("declarations", "code", "reason"), [*DECLARED, *(("", *row) for row in REFUSED)])
def test_unsupported_instruction_must_be_reached(declarations: str, code: str, reason: str) -> None:
    text = _MODULE.format(declarations=declarations, code=code)
    instruction = re.sub(r"^@\S+ ", "", code.splitlines()[-1]).split()[0].rstrip(";")  # without its predicate
    assert _run(text, "other") == 9
    assert _run(text, "snippet", np.uint32(0)) == 7
    with pytest.raises(UnsupportedInstructionError) as caught:
        _run(text, "snippet", np.uint32(1))
    error = caught.value
    assert str(error).startswith(
        f"kernel.cu:7 (PTX line {error.source.ptx_line}): {instruction!r} cannot be executed: "
    )
    assert reason in str(error)
    assert instruction in text.splitlines()[error.source.ptx_line - 1]
    assert error.instruction == instruction


@pytest.mark.parametrize(("code", "problem"), [
    ("prefetch.global [%rd1 %r1];", "prefetch.global: expected ']', found '%r1'"),
    ("mov.u32 %r1, ;", "mov.u32: expected an operand, found ';'"),
    ("mov.u32 %r1 %tid.x;", "mov.u32: expected ';', found '%tid'"),
])  # fmt: skip
def test_syntax_error_must_be_reached(code: str, problem: str) -> None:
    text = _MODULE.format(declarations="", code=code)
    assert _run(text, "snippet", np.uint32(0)) == 7
    line = text.splitlines().index(code) + 1
    with pytest.raises(PtxSyntaxError, match=f"^PTX line {line}: {re.escape(problem)}"):
        _run(text, "snippet", np.uint32(1))


@pytest.mark.parametrize("guard", ["%p0", "!%p0"])
def test_false_predicate_avoids_the_error(guard: str) -> None:
    true, false = (5, 4) if guard == "%p0" else (4, 5)  # values of %r0, the argument
    for instruction in ("frobnicate.now %r1;", "brx.idx %r0, table;"):
        text = _MODULE.format(declarations="", code=f"setp.eq.u32 %p0, %r0, 5;\n@{guard} {instruction}")
        assert _run(text, "snippet", np.uint32(false), threads=64) == 7
        with pytest.raises(UnsupportedInstructionError):
            _run(text, "snippet", np.uint32(true), threads=64)


def test_one_thread_that_reaches_it_is_enough() -> None:
    """Only thread 63 reaches the instruction: its number and the argument, 1, add up to 64."""
    code = "mov.u32 %r1, %tid.x;\nadd.u32 %r1, %r1, %r0;\nsetp.ne.u32 %p1, %r1, 64;\n@%p1 bra AROUND;\nfrobnicate;"
    text = _MODULE.format(declarations="", code=code)
    assert _run(text, "snippet", np.uint32(1), threads=63) == 7
    with pytest.raises(UnsupportedInstructionError, match="frobnicate"):
        _run(text, "snippet", np.uint32(1), threads=64)


def test_shared_memory_of_other_kernels_does_not_count() -> None:
    text = _MODULE.format(declarations=".shared .align 4 .b8 huge[300000];", code="st.shared.u32 [huge], 1;")
    assert _run(text, "other") == 9
    with pytest.raises(LaunchError, match="300000 bytes of static shared memory"):
        _run(text, "snippet", np.uint32(0))


@pytest.mark.parametrize(("parameter", "problem"), [
    (".b256 x", "parameter x: .b256 is not supported"), (".u32 x[]", "parameter x: it has no size"),
    (".u32 5", "expected a name, found '5'"), (".align 4 x", "parameter x: it has no type"),
    (".texref x", "parameter x: .texref is not supported"), (".texref x[]", "parameter x: .texref is not supported"),
])  # fmt: skip
def test_unsupported_parameter_is_refused(parameter: str, problem: str) -> None:
    text = _MODULE.format(declarations=f".entry odd(.param .u32 n, .param {parameter}) {{ ret; }}", code="")
    assert _run(text, "other") == 9
    with pytest.raises(UnsupportedInstructionError, match=f"PTX line 6: '.entry odd' cannot be executed: {problem}"):
        execute_kernel(text, "odd", (1, 1, 1), (1, 1, 1), [])


def test_fetch_without_a_texture_must_be_reached() -> None:
    text = sources.ptx("unsupported")
    out = np.zeros(32, np.float32)
    args: list[Argument] = [out, np.uint64(7)]
    never, at_once = np.int32(0), np.int32(3)
    execute_kernel(text, "seldom", (1, 1, 1), (32, 1, 1), [*args, never])
    assert out.tolist() == [*range(32)]
    with pytest.raises(LaunchError, match=r"unsupported\.cu:7 .*0x7 is not a texture; pass a ptxcount.Texture"):
        execute_kernel(text, "seldom", (1, 1, 1), (32, 1, 1), [*args, at_once])
