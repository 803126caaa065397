#!/usr/bin/env bash
# Guess: `cuobjdump -res-usage` prints the shared memory that `ptxas -v` printed of the same cubin, and a kernel without
# shared memory has 0.
# What happens: from sm_90 on it adds the 1024 bytes that CUDA reserves for each block, but only if the kernel has
# shared memory: 400 bytes become 1424, 0 bytes stay 0. If the file declares an `extern .shared` array, a kernel that
# does not use it has 1024, too. On sm_80, where the 1024 bytes are reserved as well, they are not added.
# Version: cuobjdump and ptxas 13.5.37 (nvidia-cuda-cuobjdump, nvidia-cuda-nvcc).
# Why it matters: two tools of one toolkit disagree on a number that limits the occupancy. A history that changes the
# tool, the architecture, or an unrelated line of the file shows a step of 1024 bytes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# report_shared ARCHITECTURE [DECLARATION]: the bytes of both tools, of a kernel with 400 bytes and one with none
report_shared() {
  cat >"$work/kernels.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
${2:-}
.visible .entry without(.param .u64 output) {
  .reg .b64 %a;
  ld.param.u64 %a, [output];
  st.u32 [%a], 1;
  ret;
}
.visible .entry with400(.param .u64 output) {
  .reg .b64 %a;
  .reg .b32 %i, %base, %s;
  .shared .b32 tile[100];
  ld.param.u64 %a, [output];
  mov.u32 %i, %tid.x;
  mov.u32 %base, tile;
  mad.lo.u32 %s, %i, 4, %base;
  st.shared.u32 [%s], %i;
  bar.sync 0;
  ld.shared.u32 %i, [tile+4];
  st.u32 [%a], %i;
  ret;
}
PTX
  ptxas -v "-arch=$1" "$work/kernels.ptx" -o "$work/kernels.cubin" 2>&1 |
    grep -oE '[0-9]+ bytes smem' | sed "s/^/$1 ptxas: /"
  cuobjdump -res-usage "$work/kernels.cubin" |
    grep -oE 'Function [a-z0-9]+|SHARED:[0-9]+' | paste -sd' ' | sed "s/^/$1 cuobjdump: /"
}

seen=$(report_shared sm_80; report_shared sm_90; report_shared sm_90 '.extern .shared .align 16 .b8 dynamic[];')
expected='sm_80 ptxas: 400 bytes smem
sm_80 cuobjdump: Function with400 SHARED:400 Function without SHARED:0
sm_90 ptxas: 400 bytes smem
sm_90 cuobjdump: Function with400 SHARED:1424 Function without SHARED:0
sm_90 ptxas: 400 bytes smem
sm_90 cuobjdump: Function with400 SHARED:1424 Function without SHARED:1024'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
