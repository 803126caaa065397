#!/usr/bin/env bash
# Guess: a TensorView, which slangtorch makes of a PyTorch tensor, finds each element of the tensor, or is refused.
# What happens: load() and store() multiply the index by the stride in bytes as 32-bit integers. In a matrix of 1024
# floats a row, row 1,048,576 begins at byte 0, since 2^32 bytes lie before it. The code that makes a view
# refuses other tensors with six messages, none of which is about size.
# Version: slangc 2026.14.1 (slangtorch 1.3.22). The struct that the kernel uses runs on the CPU. Seen on 30 November 2026.
# Why it matters: above 4 GiB, sums and copies are silently of the wrong rows, and stores overwrite the first ones. The
# count of transactions does not show it, but traffic from DRAM may fall, since the first rows are read again.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" slangtorch==1.3.22
PATH="$work/packages/slangtorch/bin:$PATH"
export LD_LIBRARY_PATH="$work/packages/slangtorch/bin"
chmod +x "$work/packages/slangtorch/bin/slangc"
slangc -v 2>&1

cd "$work"
cat >copy.slang <<'SLANG'
[CudaKernel]
void copy(TensorView<float> source, TensorView<float> output) {
  uint3 i = cudaBlockIdx() * cudaBlockDim() + cudaThreadIdx();
  output[i.y, i.x] = source[i.y, i.x];
}
[TorchEntryPoint]
export __extern_cpp void launch(TorchTensor<float> source, TorchTensor<float> output) {
  __dispatch_kernel(copy, uint3(4, 1 << 21, 1), uint3(256, 1, 1))(source, output);
}
SLANG
slangc copy.slang -target cuda -o copy.cu
slangc copy.slang -target torch-binding -o binding.cpp

# The generated struct as it is; the types that its other functions name stand before it.
{
  echo '#include <cstdint>
#include <cstdio>
#include <initializer_list>
#define __device__
typedef unsigned int uint;
struct uint2 { uint x, y; }; struct uint3 { uint x, y, z; }; struct uint4 { uint x, y, z, w; };'
  grep 'kSlangTorchTensorMaxDim = ' copy.cu
  sed -n '/^struct TensorView$/,/^};/p' copy.cu
  echo 'int main() {
  TensorView matrix = {nullptr, {4096, 4}, {1 << 21, 1024}, 2};
  for (uint row : {1048575u, 1048576u, 2097151u})
    printf("row %u: byte %llu, of %llu\n", row, (unsigned long long)&matrix.load<float>(row, 0), 4096ull * row);
}'
} >offsets.cpp
g++ -w -std=c++17 offsets.cpp -o offsets
{
  grep -oE 'source_0\)\.load<float>' copy.cu
  ./offsets
  sed -n '/^TensorView make_tensor_view/,/^}/p' binding.cpp >view.cpp
  grep -oE 'res\.strides\[i\] = .*;' view.cpp
  grep -oE '": [a-z][^"]*' view.cpp | sed 's/": /refused: /'
} | tee seen

expected='source_0).load<float>
row 1048575: byte 4294963200, of 4294963200
row 1048576: byte 0, of 4294967296
row 2097151: byte 4294963200, of 8589930496
res.strides[i] = val.stride(i) * elementSize;
refused: tensor is not on CUDA device.
refused: tensor is not of the expected type.
refused: tensor is not contiguous.
refused: number of dimensions exceeds limit (
refused: tensors with broadcasted dimensions are not supported (use 
refused: data pointer is invalid.'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
