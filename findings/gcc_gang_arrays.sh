#!/usr/bin/env bash
# Guess: an array that is private to an OpenACC gang is in shared memory, the memory of a block. It
# is written by STS and read by LDS, and local memory is not used.
# What happens: it is there, but its accesses are generic: ST and LD. An unused copy of the array
# stays in local memory. Before each vector loop every lane overwrites its copy with lane 0's. That
# is a load, two shuffles and a store for each 8 bytes.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx; ptxas and nvdisasm
# 13.5.37, sm_80.
# Why it matters: take a tile of 256 floats that is filled and read. For it a lane moves 64 bytes of
# shared memory and 4096 of local memory. Metrics that count LDS and STS are 0.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 \
  nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
PATH="$work/packages/nvidia/cu13/bin:$work/usr/bin:$PATH"
gcc-12 --version | head -n 1
ptxas --version | grep release

cat >tile.c <<'C'
void reverse(float *restrict output, const float *restrict source, int n) {
  float tile[256];
#pragma acc parallel loop gang private(tile) copyout(output[:n]) copyin(source[:n])
  for (int i = 0; i < n; i += 256) {
#pragma acc loop vector
    for (int j = 0; j < 256; j++) tile[j] = source[i + j];
#pragma acc loop vector
    for (int j = 0; j < 256; j++) output[i + j] = tile[255 - j];
  }
}
int main(void) { return 0; }
C
gcc-12 -O2 -fopenacc -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" tile.c -o tile
nvptx-none-as -o tile.ptx tile.xnvptx-none.mkoffload.s
{
  ptxas -v -arch=sm_80 tile.ptx -o tile.cubin 2>&1 | grep -oE '[0-9]+ bytes (stack frame|smem)'
  nvdisasm -c tile.cubin | grep -oE '\b(LD|ST)[SL]?\.[A-Z0-9.]+' | LC_ALL=C sort | uniq -c | xargs
  echo 'counted down in PTX:'
  grep -A 10 -E 'mov\.u32.*,128;' tile.ptx | grep -oE 'mov\.u32.*|(ld|st|shfl)\.[a-z0-9.]+' |
    xargs -n 6
} | tee seen

expected='1024 bytes stack frame
1024 bytes smem
9 LD.E 5 LD.E.64 8 ST.E 2 ST.E.64
counted down in PTX:
mov.u32 %r120,128; ld.u64 shfl.sync.idx.b32 shfl.sync.idx.b32 st.u64
mov.u32 %r104,128; ld.u64 shfl.sync.idx.b32 shfl.sync.idx.b32 st.u64'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
