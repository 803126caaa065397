#!/usr/bin/env bash
# Guess: `init` of RAFT's coalesced_reduction() and strided_reduction(), "initial value to use for the reduction", counts
# once, as that of std::reduce().
# What happens: each thread begins with it. It counts 4 times in the sum of a row of 4 columns, 8 times in one of 5 and
# 32 times in one of 33. In the sum of a column it counts 33 times: for the result and for 32 threads of a block.
# Version: RAFT, libraft-cu13 26.10.0. Its kernels are executed on the CPU, with a thread for each of the GPU's. Seen on
# 30 November 2026.
# Why it matters: only 0 is right. With any other number a sum depends on the shape of the matrix and of the launch,
# without an error: with init 10, one more column of ones changes a row's sum from 44 to 85.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages libraft-cu13==26.10.0
echo "libraft-cu13 26.10.0, $(g++ --version | head -1)"
# The kernels alone are taken from the headers; the rest of these needs nvcc.
python3 - >kernels.inc <<'PYTHON'
import re
from pathlib import Path

folder = Path("packages/libraft/include/raft")
for file, names in (
    ("util/reduction.cuh", ["void logicalWarpReduceVector"]),
    (
        "linalg/detail/coalesced_reduction-inl.cuh",
        ["struct ReductionThinPolicy", "void KahanBabushkaNeumaierSum", "coalescedSumThinKernel("],
    ),
    ("linalg/detail/strided_reduction.cuh", ["stridedSummationKernel("]),
):
    parts = re.findall(r"^template <.*?^};?$", (folder / file).read_text(), re.MULTILINE | re.DOTALL)
    print(*(next(part for part in parts if name in part) for name in names), sep="\n")
PYTHON

cat >run.cpp <<'CPP'
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>
#define DI inline
#define RAFT_KERNEL static void
#define __launch_bounds__(threads)
#define __shared__
struct dim3 { int x, y; } blockDim, gridDim{1, 1};
thread_local dim3 threadIdx, blockIdx{0, 0};
std::barrier<> *meeting;
void __syncthreads() { meeting->arrive_and_wait(); }
float atomicAdd(float *address, float value) { return std::atomic_ref<float>(*address).fetch_add(value); }
namespace raft {
using std::abs, std::min;
alignas(16) char tmp[1024]; // the shared memory of a kernel
float exchanged[1024];
struct add_op { float operator()(float a, float b) const { return a + b; } };
float identity(float value, int = 0) { return value; }
float myAtomicAdd(float *address, float value) { return ::atomicAdd(address, value); }
float shfl_xor(float value, int mask, int) {
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  exchanged[thread] = value;
  __syncthreads();
  const float other = exchanged[thread ^ mask];
  __syncthreads();
  return other;
}
#include "kernels.inc"
}
template <class Body> void launch(dim3 block, Body body) { // one block
  std::barrier<> barrier(block.x * block.y);
  blockDim = block, meeting = &barrier;
  std::vector<std::jthread> threads;
  for (int y = 0; y < block.y; ++y)
    for (int x = 0; x < block.x; ++x) threads.emplace_back([=] { threadIdx = {x, y}; body(); });
}
template <class Policy> void sum_rows(int columns, float init) {
  const int rows = Policy::RowsPerBlock;
  std::vector<float> ones(rows * columns, 1), sums(rows);
  launch({Policy::LogicalWarpSize, Policy::NumLogicalWarps}, [&] {
    raft::coalescedSumThinKernel<Policy>(sums.data(), ones.data(), columns, rows, init, raft::identity,
                                         [](float sum) { return sum; });
  });
  std::printf("a row of %d ones, init %g: %g instead of %g\n", columns, init, sums[0], columns + init);
}
int main() {
  for (float init : {0.f, 10.f}) { // the policies are those that RAFT takes for these lengths
    sum_rows<raft::ReductionThinPolicy<4, 128, 8, true>>(4, init);
    sum_rows<raft::ReductionThinPolicy<8, 128, 8, true>>(5, init);
    sum_rows<raft::ReductionThinPolicy<32, 128, 4, false>>(33, init);
    std::vector<float> ones(8 * 100, 1), sums(8, init); // RAFT fills the result with init first
    launch({8, 32}, [&] { raft::stridedSummationKernel(sums.data(), ones.data(), 8, 100, init, raft::identity); });
    std::printf("a column of 100 ones, init %g: %g instead of %g\n", init, sums[0], 100 + init);
  }
}
CPP
g++ -std=c++20 -w -O1 -pthread run.cpp -o run
./run | tee seen

expected='a row of 4 ones, init 0: 4 instead of 4
a row of 5 ones, init 0: 5 instead of 5
a row of 33 ones, init 0: 33 instead of 33
a column of 100 ones, init 0: 100 instead of 100
a row of 4 ones, init 10: 44 instead of 14
a row of 5 ones, init 10: 85 instead of 15
a row of 33 ones, init 10: 353 instead of 43
a column of 100 ones, init 10: 430 instead of 110'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
