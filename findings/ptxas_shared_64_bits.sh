#!/usr/bin/env bash
# Guess: an integer atomic in shared memory is one instruction, of 32 and of 64 bits, as in global memory. The CUDA guide
# names global and shared memory together for atomicAdd() and its kin.
# What happens: of 64 bits, only exchange and compare-and-swap are. Add, maximum and `and` become a loop: a load, the
# sum, and ATOMS.CAST.SPIN, which is repeated until no other thread changed the word. In global memory each is one.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_80, sm_90 and sm_100.
# Why it matters: lanes that add to one counter of 64 bits take turns, each with a load and an atomic of its own. A wider
# counter, chosen against overflow, changes the number of shared accesses, and no line of the source shows a loop.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_accesses ARCHITECTURE SPACE OPERATION BITS: the memory accesses that an atomic becomes
list_accesses() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 output, .param .u64 value) {
  .reg .b64 %rd<4>;
  .reg .b32 %tile, %r<4>;
  .shared .align 8 .b8 tile[1024];
  ld.param.u64 %rd1, [output];
  ld.param.u64 %rd2, [value];
  cvta.to.global.u64 %rd1, %rd1;
  cvt.u32.u64 %r2, %rd2;
  mov.u32 %r1, %tid.x;
  shl.b32 %r1, %r1, 3;
  mov.u32 %tile, tile;
  add.u32 %tile, %tile, %r1;
  atom.$2.$3$4 $5, [$6], $7;
  st.global.b$4 [%rd1], $5;
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(LDS|LDG|ATOMS|ATOMG)[.A-Z0-9]*' | paste -sd' '
}

seen=$(for architecture in sm_80 sm_90 sm_100; do
  for operation in add.u max.s and.b exch.b; do
    echo "$architecture shared $operation: 32: $(list_accesses "$architecture" shared "$operation" 32 %r3 %tile %r2);" \
      "64: $(list_accesses "$architecture" shared "$operation" 64 %rd3 %tile %rd2)"
  done
  echo "$architecture shared cas.b: 64: $(list_accesses "$architecture" shared cas.b 64 %rd3 %tile '%rd2, %rd1')"
  echo "$architecture global add.u: 64: $(list_accesses "$architecture" global add.u 64 %rd3 %rd1 %rd2)"
done)
expected='sm_80 shared add.u: 32: ATOMS.ADD; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_80 shared max.s: 32: ATOMS.MAX.S32; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_80 shared and.b: 32: ATOMS.AND; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_80 shared exch.b: 32: ATOMS.EXCH; 64: ATOMS.EXCH.64
sm_80 shared cas.b: 64: ATOMS.CAS.64
sm_80 global add.u: 64: ATOMG.E.ADD.64.STRONG.GPU
sm_90 shared add.u: 32: ATOMS.ADD; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_90 shared max.s: 32: ATOMS.MAX.S32; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_90 shared and.b: 32: ATOMS.AND; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_90 shared exch.b: 32: ATOMS.EXCH; 64: ATOMS.EXCH.64
sm_90 shared cas.b: 64: ATOMS.CAS.64
sm_90 global add.u: 64: ATOMG.E.ADD.64.STRONG.GPU
sm_100 shared add.u: 32: ATOMS.ADD; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_100 shared max.s: 32: ATOMS.MAX.S32; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_100 shared and.b: 32: ATOMS.AND; 64: LDS.64 ATOMS.CAST.SPIN.64
sm_100 shared exch.b: 32: ATOMS.EXCH; 64: ATOMS.EXCH.64
sm_100 shared cas.b: 64: ATOMS.CAS.64
sm_100 global add.u: 64: ATOMG.E.ADD.64.STRONG.GPU'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
