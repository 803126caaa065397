#!/usr/bin/env bash
# Guess: ptxas merges four loads or stores of neighbouring floats whose address it knows to be a multiple of 16, in any
# memory. A kernel's parameter says so of a global array: `.ptr .global .align 16`.
# What happens: in shared and local memory four become one of 16 bytes. In global memory they stay four, 16 bytes
# apart between threads, whatever the parameter says. They become one only beside a vector access through the same
# register, which must be aligned. (This part was found later, by four stores that an H200 counted as one.)
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_80, sm_90 and sm_100.
# Why it matters: a count of PTX overestimates shared accesses, and global ones beside vectors. A kernel that reads four
# neighbours one by one needs a vector type in its source: no alignment promise mends it, but an unrelated vector does.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_accesses ARCHITECTURE SPACE [vector]: the machine code of four loads and four stores, at multiples of 16 bytes by
# thread; with a load and a store of a vector 16384 bytes behind them
list_accesses() {
  loads=$(for i in 0 1 2 3; do echo "ld.$2.f32 %f$i, [%from_$2+$((4 * i))];"; done)
  stores=$(for i in 0 1 2 3; do echo "st.$2.f32 [%to_$2+$((4 * i))], %f$i;"; done)
  if [ "${3:-}" ]; then
    loads="$loads ld.$2.v4.f32 {%f4, %f5, %f6, %f7}, [%from_$2+16384];"
    stores="$stores st.$2.v4.f32 [%to_$2+16384], {%f4, %f5, %f6, %f7};"
  fi
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global .align 16 input, .param .u64 .ptr .global .align 16 output) {
  .reg .b64 %from_global, %to_global, %offset;
  .reg .b32 %from_shared, %to_shared, %from_local, %to_local, %thread;
  .reg .f32 %f<8>;
  .shared .align 16 .b8 tile[32768];
  .local .align 16 .b8 private[32768];
  ld.param.u64 %from_global, [input];
  ld.param.u64 %to_global, [output];
  cvta.to.global.u64 %from_global, %from_global;
  cvta.to.global.u64 %to_global, %to_global;
  mov.u32 %thread, %tid.x;
  shl.b32 %thread, %thread, 4;
  cvt.u64.u32 %offset, %thread;
  add.u64 %from_global, %from_global, %offset;
  add.u64 %to_global, %to_global, %offset;
  mov.u32 %from_shared, tile;
  add.u32 %from_shared, %from_shared, %thread;
  add.u32 %to_shared, %from_shared, 16384;
  mov.u32 %from_local, private;
  add.u32 %from_local, %from_local, %thread;
  add.u32 %to_local, %from_local, 16384;
  $loads
  bar.sync 0;
  $stores
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(LD|ST)[GSL](\.[A-Z0-9]+)*' | uniq -c | awk '{printf " %s %s", $1, $2}'
}

seen=$(for architecture in sm_80 sm_90 sm_100; do
  for space in shared local global; do echo "$architecture $space:$(list_accesses "$architecture" "$space")"; done
  echo "$architecture global, with a vector:$(list_accesses "$architecture" global vector)"
done)
expected='sm_80 shared: 1 LDS.128 1 STS.128
sm_80 local: 1 LDL.128 1 STL.128
sm_80 global: 4 LDG.E 4 STG.E
sm_80 global, with a vector: 2 LDG.E.128 2 STG.E.128
sm_90 shared: 1 LDS.128 1 STS.128
sm_90 local: 1 LDL.128 1 STL.128
sm_90 global: 4 LDG.E 4 STG.E
sm_90 global, with a vector: 2 LDG.E.128 2 STG.E.128
sm_100 shared: 1 LDS.128 1 STS.128
sm_100 local: 1 LDL.128 1 STL.128
sm_100 global: 4 LDG.E 4 STG.E
sm_100 global, with a vector: 2 LDG.E.128 2 STG.E.128'

echo "machine code of four loads and four stores:"
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
