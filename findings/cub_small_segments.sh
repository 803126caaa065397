#!/usr/bin/env bash
# Guess: cub::DeviceSegmentedReduce::Sum() of segments of a fixed size reads neighbours in neighbouring lanes, as it does
# for long segments, and as DeviceReduce does.
# What happens: a segment of up to 16 floats or 8 doubles is summed by one thread. Lanes are a segment apart: each load of
# 8 to 15 floats touches 32 sectors, 8 times as many as neighbours would. Of 16 floats a thread loads 16 bytes at once,
# and a request touches 32 sectors where 16 would do. Longer segments have a warp each, which reads neighbours.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6 (CCCL 3.5), nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: rows of a matrix with 3 to 16 columns are what fixed sizes are for. One column decides: a load of rows
# of 15 floats touches 32 sectors, and one of a row of 17 floats 3.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/sum.cu" <<'CUDA'
#include <cub/device/device_segmented_reduce.cuh>
void sum(void *storage, size_t size, const NUMBER *numbers, NUMBER *output, int segments, int length) {
  cub::DeviceSegmentedReduce::Sum(storage, size, numbers, output, (long long)segments, length);
}
using selector = cub::detail::segmented_reduce::policy_selector_from_types<NUMBER, int, cuda::std::plus<>>;
constexpr auto policy = selector{}(cuda::compute_capability{90});
constexpr auto small_segments = policy.small_reduce, medium_segments = policy.medium_reduce;
__device__ int limits_of_policy[] = {small_segments.threads_per_warp, small_segments.items_per_tile(), small_segments.vec_size,
                                      medium_segments.threads_per_warp, medium_segments.items_per_tile()};
CUDA
cat >"$work/count.py" <<'PYTHON'
import re
import struct
import sys

number, size = sys.argv[1], int(sys.argv[2])
initial = re.search(r"limits_of_policy\[20\] = \{([\d, ]+)\}", sys.stdin.read())[1]
threads, longest, width, wide_threads, wide_longest = struct.unpack("5i", bytes(map(int, initial.split(", "))).ljust(20, b"\0"))
print(f"{number}: segments of up to {longest} by {threads} thread, of up to {wide_longest} by {wide_threads}")

def count_sectors(apart, loaded):
    """Count a request's sectors, of lanes that load some bytes, a distance apart."""
    return len({byte // 32 for lane in range(32) for byte in range(lane * apart, lane * apart + loaded)})

for length in 3, 4, longest - 1, longest:
    loaded = min(16, size * width) if length == longest else size
    print(f"  {length} elements: {count_sectors(length * size, loaded)} sectors a request, of neighbours {count_sectors(loaded, loaded)}")
PYTHON
for number in 'float 4' 'double 8'; do
  nvcc -ptx -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "-DNUMBER=${number% *}" "$work/sum.cu" -o "$work/sum.ptx"
  python3 "$work/count.py" $number <"$work/sum.ptx"
done | tee "$work/seen"

expected='float: segments of up to 16 by 1 thread, of up to 512 by 32
  3 elements: 12 sectors a request, of neighbours 4
  4 elements: 16 sectors a request, of neighbours 4
  15 elements: 32 sectors a request, of neighbours 4
  16 elements: 32 sectors a request, of neighbours 16
double: segments of up to 8 by 1 thread, of up to 256 by 32
  3 elements: 24 sectors a request, of neighbours 8
  4 elements: 32 sectors a request, of neighbours 8
  7 elements: 32 sectors a request, of neighbours 8
  8 elements: 32 sectors a request, of neighbours 16'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
