#!/usr/bin/env bash
# Guess: `nvdisasm -gi` of a cubin of -lineinfo prints for each load of an inlined helper the call that it came from:
# "line 2 inlined at line 10". The PTX has that at each load.
# What happens: loads that follow each other stand under the first call's line. Of four calls on lines 9 to 12 all four
# loads are "inlined at line 9". With a second helper of the same body, called in turn, each load has its line. The
# listing begins anew where the helper's line changes, not where the call does.
# Version: nvcc, ptxas and nvdisasm 13.5.37, sm_80, sm_90 and sm_100. Seen on 30 November 2026.
# Why it matters: who looks for the call that reads with a stride finds the wrong one, and no hint of it. Libraries load
# by helpers, so the line of the helper alone tells nothing.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvdisasm --version | grep release
cd "$work"

cat >one.cu <<'CUDA'
__device__ __forceinline__ float fetch(const float *source, int i) {
  return source[i];
}
__device__ __forceinline__ float other(const float *source, int i) {
  return source[i];
}
extern "C" __global__ void sum(const float *source, float *output) {
  float value = threadIdx.x;
  value += fetch(source, threadIdx.x + 9);
  value += fetch(source, threadIdx.x + 10);
  value += fetch(source, threadIdx.x + 11);
  value += fetch(source, threadIdx.x + 12);
  output[threadIdx.x] = value;
}
CUDA
sed -E 's/fetch(.* (10|12)\))/other\1/' one.cu >two.cu

for file in one two; do
  for architecture in sm_80 sm_90 sm_100; do
    nvcc -cubin "-arch=$architecture" -lineinfo $file.cu -o $file.cubin
    # a load's offset tells its call: 4 bytes times the line
    nvdisasm -c -gi $file.cubin | awk -v line="$file.cu, $architecture:" '
      /inlined at/ { call = $NF }
      /LDG/ { match($0, /\+0x[0-9a-f]+/); line = line " " substr($0, RSTART, RLENGTH) " from line " call "," }
      END { print line }'
  done
done | tee seen

expected=$(for architecture in sm_80 sm_90 sm_100; do
  echo "one.cu, $architecture: +0x24 from line 9, +0x28 from line 9, +0x2c from line 9, +0x30 from line 9,"
done
for architecture in sm_80 sm_90 sm_100; do
  echo "two.cu, $architecture: +0x24 from line 9, +0x28 from line 10, +0x2c from line 11, +0x30 from line 12,"
done)
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
