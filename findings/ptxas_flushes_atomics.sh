#!/usr/bin/env bash
# Guess, written after the first sign: a sum of float32 without .ftz keeps subnormal numbers, whichever instruction makes it: add, an atomic in global
# or shared memory, or a bulk reduction.
# What happens: atomics in global memory have .FTZ in machine code, as the PTX ISA says of them. The loop of a shared
# atomic and the bulk reduction have none.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_90.
# Why it matters: a sum by atomics differs from its reference where numbers are tiny, and a kernel that changes from
# atomics to bulk reductions (TMA) changes its results there.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_sums CODE: the instructions in machine code that add floats
list_sums() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 output) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .shared .align 16 .b8 tile[128];
  ld.param.u64 %rd1, [output];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, tile;
  ld.global.f32 %f1, [%rd1];
  $1
  ret;
}
PTX
  ptxas -arch=sm_90 "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(FADD|(RED|ATOM)G\.E\.ADD\.F32|UBLKRED\.G\.S\.ADD\.F32)[.A-Z0-9]*' | sort -u
}

seen="add.f32: $(list_sums 'add.f32 %f2, %f1, %f1; st.global.f32 [%rd1], %f2;')
red.global.add.f32: $(list_sums 'red.global.add.f32 [%rd1], %f1;')
atom.global.add.f32: $(list_sums 'atom.global.add.f32 %f2, [%rd1], %f1; st.global.f32 [%rd1+4], %f2;')
atom.shared.add.f32: $(list_sums 'atom.shared.add.f32 %f2, [tile], %f1; st.global.f32 [%rd1+4], %f2;')
cp.reduce.async.bulk: $(list_sums 'cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 128;')"
expected='add.f32: FADD
red.global.add.f32: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
atom.global.add.f32: ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU
atom.shared.add.f32: FADD
cp.reduce.async.bulk: UBLKRED.G.S.ADD.F32.RN'

echo "sums of float32 in machine code:"
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
