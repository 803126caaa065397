#!/usr/bin/env bash
# Guess, written before reading the source: Thinc's CUDA kernels for batches of sequences, spaCy's on GPUs, read
# vectors by neighbouring lanes, and add up a sequence in registers.
# What happens: a thread has a whole sequence or row. Lanes lie a sequence of vectors apart: 32 sectors a load and a
# store, 8 times as many as needed. reduce_sum() keeps its sums in global memory: each addition loads the element and
# the sum, and stores the sum. seq2col(), which spaCy's tok2vec layers run, copies a word's window in one thread.
# Version: thinc 9.1.1, its kernels run thread by thread on the CPU by GCC; -O0 keeps each access. Seen on 1 December
# 2026.
# Why it matters: 32 sequences of 20 vectors of 96 floats have 7,680 sectors, and reduce_sum() asks for 184,320. One
# warp of the GPU does all of it. The first loop also adds up the lengths of all earlier sequences in each thread.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --disable-pip-version-check --no-deps --only-binary :all: --target packages thinc==9.1.1
echo "thinc 9.1.1, $(g++ --version | head -n 1)"

cat >run.cpp <<'CPP'
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <vector>
#define __global__
using namespace std;
struct { int x; } threadIdx, blockIdx{0}, blockDim{128}, gridDim{128};
vector<pair<char, uintptr_t>> accesses; // of one thread
// A float that notes its loads and stores in an array.
struct number {
  float value;
  number(float start = 0) : value(start) {}
  number(const number &other) { *this = other; }
  operator float() const { accesses.push_back({'L', uintptr_t(this)}); return value; }
  number &operator=(const number &other) { return store(float(other)); }
  number &operator+=(const number &other) { return store(float(*this) + float(other)); }
  number &store(float result) { accesses.push_back({'S', uintptr_t(this)}); value = result; return *this; }
};
#include "packages/thinc/backends/_custom_kernels.cu"

// Run a warp, and count the 32-byte sectors of each access of all lanes.
template <class Kernel> void count_sectors(const char *name, Kernel run) {
  map<pair<size_t, char>, set<uintptr_t>> sectors;
  for (threadIdx.x = 0; threadIdx.x < 32; threadIdx.x++) {
    accesses.clear();
    run();
    for (size_t i = 0; i < accesses.size(); i++) sectors[{i, accesses[i].first}].insert(accesses[i].second / 32);
  }
  size_t loads = 0, stores = 0, loaded = 0, stored = 0;
  for (auto &[access, lines] : sectors)
    if (access.second == 'L') loads++, loaded += lines.size();
    else stores++, stored += lines.size();
  printf("%s: %zu loads of %zu sectors, %zu stores of %zu\n", name, loads, loaded, stores, stored);
}

int main() {
  const int sequences = 32, words = 20, width = 96, rows = sequences * words;
  alignas(256) static number vectors[rows * width], sums[sequences * width], columns[rows * width * 3];
  static int which[sequences * width];
  vector<int> lengths(sequences, words);
  printf("%d vectors of %d floats have %d sectors", rows, width, rows * width / 8);
  printf(", %d sums %d\n", sequences, sequences * width / 8);
  count_sectors("reduce_sum", [&] { reduce_sum(sums, vectors, lengths.data(), sequences, rows, width); });
  count_sectors("reduce_max", [&] { reduce_max(sums, which, vectors, lengths.data(), sequences, rows, width); });
  count_sectors("seq2col of 32 rows", [&] { seq2col(columns, vectors, lengths.data(), 1, 32, width, sequences); });
}
CPP
g++ -std=c++17 -O0 -w -o run run.cpp
./run | tee seen

expected='640 vectors of 96 floats have 7680 sectors, 32 sums 384
reduce_sum: 3840 loads of 122880 sectors, 1920 stores of 61440
reduce_max: 3744 loads of 119808 sectors, 96 stores of 3072
seq2col of 32 rows: 288 loads of 8544 sectors, 288 stores of 8928'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
