#!/usr/bin/env bash
# Guess: RAFT's coalesced_reduction() and strided_reduction() with raft::add_op sum a row or column that contains an
# infinity to infinity, as any other sum does, and as they do with one's own operator that adds.
# What happens: NaN. For raft::add_op alone a compensated sum is taken, as of Neumaier: the rounding error of infinity is
# infinity minus infinity. A sum that overflows is NaN, too: of the squares of 1e20, for instance.
# Version: RAFT, libraft-cu13 26.10.0. Its kernels are executed on the CPU, with a thread for each of the GPU's. Seen on
# 30 November 2026.
# Why it matters: sums, means and norms are made so. A norm that is too large for a float is NaN, which no comparison
# finds, while one of the largest floats is right. Replacing add_op by a lambda changes the result.
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
        ["struct ReductionThinPolicy", "void KahanBabushka", "coalescedReductionThinKernel(", "coalescedSumThinKernel("],
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
float positive(float number) { return std::isnan(number) ? std::abs(number) : number; } // "nan" without a sign
float square(float value, int) { return value * value; }
template <class Operation> void show(const char *name, float first, Operation operation) {
  using Policy = raft::ReductionThinPolicy<4, 128, 8, true>; // RAFT's for four columns
  const int rows = Policy::RowsPerBlock, columns = 4;
  std::vector<float> numbers(rows * columns, 1), sums(rows), own(rows), column(columns);
  numbers[0] = first;
  const auto keep = [](float sum) { return sum; };
  const dim3 block{Policy::LogicalWarpSize, Policy::NumLogicalWarps};
  launch(block, [&] { raft::coalescedSumThinKernel<Policy>(sums.data(), numbers.data(), columns, rows, 0.f, operation, keep); });
  launch(block, [&] {
    raft::coalescedReductionThinKernel<Policy>(own.data(), numbers.data(), columns, rows, 0.f, operation,
                                               [](float a, float b) { return a + b; }, keep);
  });
  launch({8, 32}, [&] { raft::stridedSummationKernel(column.data(), numbers.data(), columns, rows, 0.f, operation); });
  std::printf("%s of %g, 1, 1, ...: row %g, with a lambda %g, column %g\n", name, first, positive(sums[0]),
              positive(own[0]), positive(column[0]));
}
int main() {
  show("sum", 1e20f, raft::identity);
  show("sum", INFINITY, raft::identity);
  show("sum", -INFINITY, raft::identity);
  show("sum of squares", 1e19f, square);
  show("sum of squares", 1e20f, square);
}
CPP
g++ -std=c++20 -w -O1 -pthread run.cpp -o run
./run | tee seen

expected='sum of 1e+20, 1, 1, ...: row 1e+20, with a lambda 1e+20, column 1e+20
sum of inf, 1, 1, ...: row nan, with a lambda inf, column nan
sum of -inf, 1, 1, ...: row nan, with a lambda -inf, column nan
sum of squares of 1e+19, 1, 1, ...: row 1e+38, with a lambda 1e+38, column 1e+38
sum of squares of 1e+20, 1, 1, ...: row nan, with a lambda inf, column nan'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
