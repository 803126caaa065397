#!/usr/bin/env bash
# Guess: the threads of a cuFFTDx transform exchange elements through shared memory without bank
# conflicts. The library's own parameters, which its documentation recommends for a start, see to
# it.
# What happens: in the first exchange each thread stores its numbers in one piece, without padding,
# 16 bytes at once. The lanes of such a store are 64 bytes apart: 16 passes instead of 4. With 1024
# points a thread has 32 elements, so lanes are 256 bytes apart. All 32 use the same four banks, one
# after another: 32 passes.
# Version: cuFFTDx of nvidia-mathdx 25.6.0, nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: a profile shows bank conflicts that no line of one's own code causes. Their number
# depends on a parameter that one did not choose.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
  nvidia-mathdx==25.6.0
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernel.cu" <<'CUDA'
#include <cufftdx.hpp>
using namespace cufftdx;

using Transform = decltype(Size<POINTS>() + Precision<NUMBER>() + Type<fft_type::c2c>() +
                           Direction<fft_direction::forward>() + SM<900>() + Block());
static_assert(Transform::block_dim.x == THREADS);
static_assert(Transform::shared_memory_size == THREADS * PIECE); // so the threads' pieces fill it: no padding

extern "C" __global__ void transform(Transform::value_type *points) {
  extern __shared__ __align__(16) char shared[];
  Transform::value_type own[Transform::storage_size];
  points += POINTS * blockIdx.x + threadIdx.x;
  for (int i = 0; i < Transform::elements_per_thread; i++) own[i] = points[i * Transform::stride];
  Transform().execute(own, reinterpret_cast<Transform::value_type *>(shared));
  for (int i = 0; i < Transform::elements_per_thread; i++) points[i * Transform::stride] = own[i];
}
CUDA
cat >"$work/count_passes.py" <<'PYTHON'
import re
import sys
from collections import Counter

threads, piece = int(sys.argv[1]), int(sys.argv[2])
stores = re.findall(r"STS\.128 \[(R\d+)(?:\+(0x\w+))?\]", sys.stdin.read())
offsets = {int(offset or "0", 16) for _, offset in stores}
assert offsets == set(range(0, piece, 16)) and len({register for register, _ in stores}) == 1
lanes, passes = min(threads, 32), 0
for first in range(0, lanes, 8):  # one pass may serve 8 lanes, which store 128 bytes
    passes += max(Counter(lane * piece // 16 % 8 for lane in range(first, first + 8)).values())
print(f"{len(stores)} stores of 16 bytes, lanes {piece} bytes apart, {passes} passes each instead of {lanes // 8}")
PYTHON

# show POINTS NUMBER THREADS PIECE: the stores of the first exchange, in which a thread fills PIECE bytes
show() {
  nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" \
    -I "$work/packages/nvidia/mathdx/include" -I "$work/packages/nvidia/mathdx/external/cutlass/include" \
    -DPOINTS="$1" -DNUMBER="$2" -DTHREADS="$3" -DPIECE="$4" "$work/kernel.cu" -o "$work/kernel.cubin" 2>/dev/null
  echo "$1 $2: $(nvdisasm -c "$work/kernel.cubin" | python3 "$work/count_passes.py" "$3" "$4")"
}
{
  show 512 float 64 64
  show 1024 float 32 256
  show 512 double 64 64
} | tee "$work/seen"

expected='512 float: 4 stores of 16 bytes, lanes 64 bytes apart, 16 passes each instead of 4
1024 float: 16 stores of 16 bytes, lanes 256 bytes apart, 32 passes each instead of 4
512 double: 8 stores of 16 bytes, lanes 64 bytes apart, 16 passes each instead of 4'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
