"""Binders of instructions: the step of an instruction does not depend on the order of the binders."""

from ptxcount.isa import dispatch
from ptxcount.isa.opcode_registry import BINDERS, FORMS
from ptxcount.ptx.parser import parse
from tests.ptxcount.snippets import module

_BARRIER = "mbarrier::complete_tx::bytes"
_FRAGMENT = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
#: Forms of opcodes that several binders share.
FORMS_OF_PTX = f"""
cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rn.f16x2.f32 %r1, %f1, %f2; cvt.rna.tf32.f32 %r1, %f1;
cvt.pack.sat.u16.s32 %r1, %r2, %r3; cvt.u32.u64 %r1, %rd1; cvt.rn.f32.s32 %f1, %r1;
add.u32 %r1, %r2, %r3; add.cc.u32 %r1, %r2, %r3; addc.u32 %r1, %r2, %r3; sub.f32 %f1, %f2, %f3;
mad.lo.u32 %r1, %r2, %r3, %r4; mad.lo.cc.u32 %r1, %r2, %r3, %r4; madc.hi.u32 %r1, %r2, %r3, %r4;
max.f32 %f1, %f2, %f3; max.f32 %f1, %f2, %f3, %f4; min.s32 %r1, %r2, %r3;
lop3.b32 %r1, %r2, %r3, %r4, 5; lop3.and.b32 %r1|%p1, %r2, %r3, %r4, 5, %p2; mov.b32 %r1, %r2;
st.global.u32 [%rd1], %r1; st.bulk.weak.shared::cta [%r1], 64, 0;
st.async.shared::cluster.{_BARRIER}.u32 [%r1], %r2, [%r3];
red.global.add.u32 [%rd1], %r1; red.async.relaxed.cluster.shared::cluster.{_BARRIER}.inc.u32 [%r1], %r2, [%r3];
bar.sync 0; bar.warp.sync -1; barrier.cluster.arrive;
mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.shared.b64 %rd1, [%r1]; mbarrier.pending_count.b64 %r1, %rd1;
cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group; cp.async.wait_all;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; cp.async.mbarrier.arrive.b64 [%r1];
cp.async.bulk.prefetch.L2.global [%rd1], 16; cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {{%r1}}];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;
cp.async.bulk.shared::cluster.global.{_BARRIER} [%r1], [%rd1], 16, [%r2];
tensormap.replace.tile.rank.b1024.b32 [%rd1], 1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;
wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {_FRAGMENT}, [%r1], %r2;
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r1], {_FRAGMENT.replace("r", "f")}, %r2;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {_FRAGMENT.replace("r", "f")}, {_FRAGMENT}, {_FRAGMENT},
    {_FRAGMENT.replace("r", "f")};
setp.lt.s32 %p1, %r1, %r2; set.lt.u32.s32 %r1, %r2, %r3;
"""


def test_order_of_binders_does_not_matter() -> None:
    """All binders but one return None for an instruction; forms are tried before other binders."""
    text = module(FORMS_OF_PTX, 0, ".reg .b16 %h<9>; .reg .f32 %f<9>;")
    *instructions, _ret = parse(text).entries["snippet"].parse_body().instructions
    for instruction in instructions:
        dispatch._find_step(instruction)  # raises if no binder fits; imports binders on demand
        for binders_by_opcode in (FORMS, BINDERS):
            steps = [binder(instruction) for binder in binders_by_opcode.get(instruction.opcode, [])]
            step_count = len(steps) - steps.count(None)
            assert step_count <= 1, instruction.name
            if step_count:
                break
