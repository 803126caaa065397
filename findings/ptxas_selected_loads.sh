#!/usr/bin/env bash
# Guess: two loads without guards, and a select of one of the values, are two loads in all lanes.
# What happens: ptxas guards the second load with the select's predicate: only lanes that need the value load it. So it
# does for one load of global, read-only or shared memory. A store between the two keeps a plain load unguarded, and so
# do vectors, an operation between load and select, and a constant 0 as the other value.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_80, sm_90 and sm_100.
# Why it matters: jnp.where(a > 0, a, b) and cupy.where(mask, a, b) read b where they need it. Where warps agree, the
# second load makes no request; counts of PTX and estimates from source have both. Met in kernels of XLA and CuPy on an
# H200, where 3891 sectors were read for 3900; no guess was written.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# loads_of ARCHITECTURE CODE: the loads in machine code, of code that loads from %rd1 and %rd2 and selects %r7
loads_of() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 input, .param .u64 output) {
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<5>;
  .shared .align 4 .b8 cells[4096];
  ld.param.u64 %rd1, [input];
  ld.param.u64 %rd3, [output];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd4, %r0, 4;
  add.u64 %rd1, %rd1, %rd4;
  add.u64 %rd2, %rd1, 65536;
  add.u64 %rd3, %rd3, %rd4;
  mov.u32 %r1, cells;
  mad.lo.u32 %r2, %r0, 4, %r1;
  st.shared.u32 [%r2], %r0;
  bar.sync 0;
  $2
  st.global.u32 [%rd3], %r7;
  ret;
}
PTX
  ptxas -arch="$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(@!?P[0-9] +)?(LDS|LDG)\b' | sed -E 's/@!?P[0-9] +/guarded /' | paste -sd, | sed 's/,/, /g'
}

first='ld.global.u32 %r5, [%rd1]; setp.gt.s32 %p1, %r5, 0;'
second='ld.global.u32 %r6, [%rd2];'
select='selp.b32 %r7, %r5, %r6, %p1;'
seen=$(
  for architecture in sm_80 sm_90 sm_100; do echo "$architecture: $(loads_of $architecture "$first $second $select")"; done
  echo "loads first: $(loads_of sm_90 "ld.global.u32 %r5, [%rd1]; $second setp.gt.s32 %p1, %r5, 0; $select")"
  echo "read-only: $(loads_of sm_90 "$first ld.global.nc.u32 %r6, [%rd2]; $select")"
  echo "shared: $(loads_of sm_90 "$first ld.shared.u32 %r6, [%r2+64]; $select")"
  echo "a store between: $(loads_of sm_90 "$first $second st.global.u32 [%rd3+64], %r0; $select")"
  pair='selp.b32 %r7, %r5, %r6, %p1; selp.b32 %r9, %r0, %r8, %p1; xor.b32 %r7, %r7, %r9;'
  echo "a vector: $(loads_of sm_90 "$first ld.global.v2.u32 {%r6, %r8}, [%rd2]; $pair")"
  echo "added: $(loads_of sm_90 "$first $second add.u32 %r6, %r6, 5; $select")"
  echo "or 0: $(loads_of sm_90 "setp.gt.u32 %p1, %r0, 9; $second selp.b32 %r7, 0, %r6, %p1;")"
)
echo "$seen"
expected='sm_80: LDG, guarded LDG
sm_90: LDG, guarded LDG
sm_100: LDG, guarded LDG
loads first: LDG, guarded LDG
read-only: LDG, guarded LDG
shared: LDG, guarded LDS
a store between: LDG, LDG
a vector: LDG, LDG
added: LDG, LDG
or 0: LDG'
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
