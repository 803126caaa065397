#!/usr/bin/env bash
# Guess: ViennaCL's trans(), assigned to a matrix in CUDA, loads and stores neighbours, through a tile in shared memory.
# What happens: there is no tile. The lanes of a warp take 32 columns of a row. Of a row-major matrix of floats 32 loads are
# 4 sectors, and 32 stores are 32, each in another row of the result. Of a column-major one the loads are spread, and the
# stores are neighbours.
# Version: ViennaCL 1.7.1 of Debian 12. Its kernel is run on the CPU, thread by thread, with an element type that notes its
# addresses; a sector has 32 bytes. Seen on 1 December 2026.
# Why it matters: 4.5 times the sectors of a transpose with a tile, and a temporary matrix besides, which trans() assigns.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download libviennacl-dev=1.7.1+dfsg1-6
dpkg -x libviennacl-dev*.deb .
echo "ViennaCL $(dpkg-deb -f libviennacl-dev*.deb Version)"
header=usr/include/viennacl/linalg/cuda/matrix_operations_row.hpp
# The kernel's own text, up to the brace that ends it.
{ echo 'template<typename NumericT>'; sed -n '/^__global__ void trans_kernel(/,/^}/p' "$header"; } >kernel.hpp
grep -o 'trans_kernel<<<128,128>>>' usr/include/viennacl/linalg/cuda/matrix_operations.hpp | tee seen

cat >run.cpp <<'CPP'
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>
#define __global__
struct { unsigned x; } blockIdx, threadIdx, blockDim{128}, gridDim{128};
std::vector<uintptr_t> loads, stores;
struct Float {  // 4 bytes, as float
  int bits;
  Float &operator=(const Float &other) {
    loads.push_back(reinterpret_cast<uintptr_t>(&other));
    stores.push_back(reinterpret_cast<uintptr_t>(this));
    return *this;
  }
};
#include "kernel.hpp"

// Print the mean number of sectors of block 0's first warp.
void show(const char *order, bool row_major) {
  const unsigned size = 1024;
  Float *source = static_cast<Float *>(aligned_alloc(256, 4 * size * size));
  Float *result = static_cast<Float *>(aligned_alloc(256, 4 * size * size));
  std::vector<std::vector<uintptr_t>> all_loads, all_stores;
  for (threadIdx.x = 0; threadIdx.x < 32; ++threadIdx.x) {
    loads.clear(), stores.clear();
    trans_kernel<Float>(source, 0, 0, size, size, size, size, 1, 1, result, 0, 0, size, size, 1, 1, row_major);
    all_loads.push_back(loads), all_stores.push_back(stores);
  }
  double sectors[2] = {};
  for (size_t access = 0; access < all_loads[0].size(); ++access) {
    std::set<uintptr_t> loaded, stored;
    for (int lane = 0; lane < 32; ++lane)
      loaded.insert(all_loads[lane][access] / 32), stored.insert(all_stores[lane][access] / 32);
    sectors[0] += loaded.size(), sectors[1] += stored.size();
  }
  std::printf("%s: %g sectors a load, %g a store\n", order, sectors[0] / all_loads[0].size(), sectors[1] / all_loads[0].size());
}
int main() {
  show("row-major", true);
  show("column-major", false);
}
CPP
g++ -std=c++17 -w run.cpp -o run
./run | tee -a seen

expected='trans_kernel<<<128,128>>>
row-major: 4 sectors a load, 32 a store
column-major: 32 sectors a load, 4 a store'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
