#!/usr/bin/env bash
# Guess, written after the first sign, counters of an H200: an arithmetic instruction between two loads of neighbouring
# words of shared memory does not matter: ptxas merges the loads into one of 8 bytes, as without the instruction.
# What happens: an exact operation that machine code calls as a function keeps them two loads: `div.rn`, `sqrt.rn` and
# `rcp.rn` of float32 and float64, divisions of 64 and of 16 bits, `rsqrt.approx.f64`. Approximate ones, `div.full.f32`
# and divisions of 32 bits do not. It does not matter that neither load needs the result, or which constant divides.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_80, sm_90 and sm_100.
# Why it matters: `x / y` in a loop over a tile doubles the requests to shared memory, which `-use_fast_math` or
# `__fdividef` halves again, though it says nothing about memory.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_loads ARCHITECTURE INSTRUCTION: the loads of two neighbouring words around the instruction
list_loads() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u32 n) {
  .shared .align 8 .b8 tile[8192];
  .reg .b64 %out, %u, %v;
  .reg .f64 %d, %e;
  .reg .f32 %f, %g;
  .reg .b32 %lane, %address, %first, %second, %i, %n;
  .reg .b16 %h, %k;
  ld.param.u64 %out, [out];
  ld.param.u32 %n, [n];
  mov.u32 %lane, %tid.x;
  mov.u32 %address, tile;
  mad.lo.u32 %address, %lane, 8, %address;
  st.shared.u32 [%address], %n;
  bar.sync 0;
  cvt.rn.f32.u32 %f, %n;
  cvt.rn.f64.u32 %d, %n;
  cvt.u64.u32 %u, %n;
  cvt.u16.u32 %h, %n;
  ld.shared.u32 %first, [%address];
  $2;
  ld.shared.u32 %second, [%address+4];
  add.u32 %first, %first, %second;
  st.global.u32 [%out], %first;
  st.global.f32 [%out+8], %g;
  st.global.f64 [%out+16], %e;
  st.global.u64 [%out+24], %v;
  st.global.u32 [%out+32], %i;
  st.global.u16 [%out+40], %k;
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin" 2>"$work/messages" || cat "$work/messages"
  nvdisasm -c "$work/kernel.cubin" | grep -oE 'LDS(\.64)?' | tr '\n' ' '
}

called='div.rn.f32 %g,%f,%f|div.rn.f32 %g,%f,0f40400000|sqrt.rn.f32 %g,%f|rcp.rn.f32 %g,%f|div.rn.f64 %e,%d,%d
rsqrt.approx.f64 %e,%d|div.u64 %v,%u,%u|rem.s64 %v,%u,10|div.u16 %k,%h,%h'
inline='div.full.f32 %g,%f,%f|div.approx.f32 %g,%f,%f|sqrt.approx.f32 %g,%f|div.u32 %i,%n,%lane|rem.s32 %i,%n,%lane
fma.rn.f64 %e,%d,%d,%d'

for group in called inline; do
  printf '%s\n' "${!group}" | tr '|' '\n' | while read -r instruction; do
    for architecture in sm_80 sm_90 sm_100; do
      echo "$group, $architecture, ${instruction%% *}: $(list_loads "$architecture" "$instruction")"
    done
  done
done | tee "$work/seen"
[ "$(grep -c '^called.*: LDS LDS $' "$work/seen")" = 27 ] && [ "$(grep -c '^inline.*: LDS.64 $' "$work/seen")" = 18 ] ||
  { echo 'the behaviour changed' >&2; exit 1; }
