#!/usr/bin/env bash
# Guess: suggest_layout_smem_a() and suggest_layout_smem_b() of cuBLASDx, to be tried "to achieve better GEMM and IO
# performance", give layouts without bank conflicts: swizzled ones, as for half and double.
# What happens: for float and complex float they are the plain layouts of get_layout_smem_a() and get_layout_smem_b().
# With the default arrangement, row-major A times column-major B, a warp's lanes are in 32 rows of A, 256 bytes apart
# for 64 columns: they read the same bank or the same four, so each load of A takes 32 passes. Column-major A and
# row-major B have no conflicts.
# Version: cuBLASDx of nvidia-mathdx 25.6.0, nvcc 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: a product of float32 spends most of its shared memory passes on conflicts, with the layouts that the
# library suggests. A leading dimension of one's own helps, which a suggestion is there to spare.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 nvidia-mathdx==25.6.0
PATH="$work/packages/nvidia/cu13/bin:$PATH"
echo "nvidia-mathdx 25.6.0, $(nvcc --version | grep release)"
ln -s libcudart.so.13 packages/nvidia/cu13/lib/libcudart.so
flags="-arch=sm_90 -std=c++17 -w --expt-relaxed-constexpr -I packages/nvidia/mathdx/include
  -I packages/nvidia/mathdx/external/cutlass/include -I packages/nvidia/cu13/include/cccl"

cat >layouts.cu <<'CUDA'
#include <cstdio>
#include <cublasdx.hpp>
using namespace cublasdx;
template <class Number, type kind> void show(const char *name) {
  using Product = decltype(Size<64, 64, 64>() + Precision<Number>() + Type<kind>() + Function<function::MM>() + SM<900>() +
                           Block() + BlockDim<128>() + Arrangement<row_major, col_major>() + MaxAlignment());
  std::printf("%s: ", name);
  cute::print(Product::get_layout_smem_a().layout);
  std::printf(", suggested ");
  cute::print(Product::suggest_layout_smem_a().layout);
  std::printf("\n");
}
int main() {
  show<float, type::real>("float");
  show<float, type::complex>("complex float");
  show<double, type::real>("double");
  show<__half, type::real>("half");
}
CUDA
cat >kernel.cu <<'CUDA'
#include <cublasdx.hpp>
using namespace cublasdx;
using Product = decltype(Size<64, 64, 64>() + Precision<float>() + Type<type::real>() + Function<function::MM>() + SM<900>() +
                         Block() + BlockDim<128>() + Arrangement<ORDER_OF_A, ORDER_OF_B>() + MaxAlignment());
extern "C" __global__ __launch_bounds__(128) void product(float *output) {
  extern __shared__ __align__(16) float shared[];
  auto [sums, partitioner] = Product().execute(make_tensor(shared, Product::suggest_layout_smem_a()),
                                               make_tensor(shared + 64 * 64, Product::suggest_layout_smem_b()));
  for (int i = 0; i < cute::size(sums); ++i) output[i * 128 + threadIdx.x] = sums(i);
}
CUDA
cat >count_passes.py <<'PYTHON'
import re
import sys
from collections import Counter

registers, loads = {"shared": [0] * 32, "%tid.x": list(range(32))}, Counter()
operations = {"shl": int.__lshift__, "shr": int.__rshift__, "and": int.__and__, "add": int.__add__}
for line in sys.stdin:
    if move := re.match(r"\s*mov\.u32\s+(%r\d+), (shared|%tid\.x);", line):
        registers[move[1]] = registers[move[2]]
    elif operation := re.match(r"\s*(shl|shr|and|add)\.\w+\s+(%r\d+), (%r\d+), (%r\d+|-?\d+);", line):
        name, result, first, second = operation.groups()
        if first in registers and (second in registers or "%" not in second):
            seconds = registers[second] if second in registers else [int(second)] * 32
            registers[result] = list(map(operations[name], registers[first], seconds))
    elif load := re.match(r"\s*ld\.shared(\.v\d)?\.\w(\d+)\s.*\[(%r\d+)", line):
        loads[load[3], int((load[1] or ".v1")[2:]) * int(load[2]) // 8] += 1  # of a base register and width
for (register, width), times in sorted(loads.items()):
    addresses, passes, ideal = registers[register], 0, 0
    for first in range(0, 32, 128 // width if width > 4 else 32):
        lanes = addresses[first : first + (128 // width if width > 4 else 32)]
        words = {address + byte for address in lanes for byte in range(0, width, 4)}
        passes += max(Counter(word // 4 % 32 for word in words).values())
    apart = addresses[1] - addresses[0]
    print(f"  {times} loads of {width} bytes, lanes {apart} bytes apart: {passes} passes each" if apart else
          f"  {times} loads of {width} bytes, the same in all lanes")
PYTHON

{
  nvcc $flags layouts.cu -o layouts -L packages/nvidia/cu13/lib
  LD_LIBRARY_PATH=packages/nvidia/cu13/lib ./layouts
  for order in row_major col_major; do
    if [ $order = row_major ]; then other=col_major; else other=row_major; fi
    echo "float, $order A, $other B:"
    nvcc -ptx $flags -DORDER_OF_A=$order -DORDER_OF_B=$other kernel.cu -o kernel.ptx
    python3 count_passes.py <kernel.ptx
  done
} | tee seen

expected='float: (_64,_64):(_64,_1), suggested (_64,_64):(_64,_1)
complex float: (_64,_64):(_64,_1), suggested (_64,_64):(_64,_1)
double: (_64,_64):(_64,_1), suggested Sw<2,2,2> o _0 o ((_4,_16),(_16,_4)):((_16,_64),(_1,_1024))
half: (_64,_64):(_64,_1), suggested Sw<3,3,3> o _0 o ((_8,_8),(_64,_1)):((_64,_512),(_1,_0))
float, row_major A, col_major B:
  24 loads of 4 bytes, lanes 256 bytes apart: 32 passes each
  24 loads of 8 bytes, lanes 256 bytes apart: 32 passes each
  16 loads of 16 bytes, lanes 256 bytes apart: 32 passes each
  216 loads of 4 bytes, the same in all lanes
  216 loads of 8 bytes, the same in all lanes
  112 loads of 16 bytes, the same in all lanes
float, col_major A, row_major B:
  64 loads of 8 bytes, lanes 8 bytes apart: 2 passes each
  256 loads of 16 bytes, the same in all lanes'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
