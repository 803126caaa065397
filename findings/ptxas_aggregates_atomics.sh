#!/usr/bin/env bash
# Guess: an atomicAdd of 32 lanes at one address is 32 additions in the memory system, whatever the type.
# What happens: ptxas rewrites it for integers. The warp votes and sums its lanes, and one lane alone issues the
# atomic: REDUX for a sum of different values, POPC for a constant. A float addition stays 32 additions, and so does
# an integer addition whose address differs between lanes.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_90.
# Why it matters: a counter sends 1 or 32 additions for each warp, which depends on its type, and neither source nor
# PTX tells. A change from `int` to `float` is a regression that only machine code explains.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_machine_code INSTRUCTION: the votes, sums and atomics of it, with the predicate that leaves one lane
list_machine_code() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 counter) {
  .reg .b64 %one, %own;
  .reg .b32 %lane;
  ld.param.u64 %one, [counter];
  cvta.to.global.u64 %one, %one;
  mov.u32 %lane, %tid.x;
  mad.wide.u32 %own, %lane, 4, %one;
  $1;
  ret;
}
PTX
  ptxas -arch=sm_90 "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(@P[0-9] )?(POPC|REDUX|REDG)[.A-Z0-9]*' | paste -sd' '
}

seen="u32 constant: $(list_machine_code 'red.global.add.u32 [%one], 1')
u32 of each lane: $(list_machine_code 'red.global.add.u32 [%one], %lane')
f32 constant: $(list_machine_code 'red.global.add.f32 [%one], 0f3F800000')
u32, an address for each lane: $(list_machine_code 'red.global.add.u32 [%own], 1')"
expected='u32 constant: POPC @P0 REDG.E.ADD.STRONG.GPU
u32 of each lane: REDUX.SUM @P0 REDG.E.ADD.STRONG.GPU
f32 constant: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
u32, an address for each lane: REDG.E.ADD.STRONG.GPU'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
