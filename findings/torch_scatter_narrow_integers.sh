#!/usr/bin/env bash
# Guess: scatter_max(), scatter_min() and scatter_mul() of torch-scatter change only the elements that an index names, of
# int8 and int16, too. Their CUDA kernels are compiled for all of PyTorch's integer types.
# What happens: a negative int8 overwrites its neighbours up to the end of the word of 4 bytes, and a negative int16 in
# a word's lower half overwrites the upper one. The atomic is a compare-and-swap of the word. It puts the result there
# without masking it, so the bits of the sign, or of an overflow of uint8, are put into the neighbours. int32 is right.
# Version: torch-scatter 2.1.2, its atomics.cuh run on the CPU by GCC. Seen on 30 November 2026.
# Why it matters: of four elements that -5 reaches, three end as -1. Nothing is raised. Who narrows indices or labels to
# move fewer bytes gets other results.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# pip would need PyTorch to download the sources, so the link comes from the index.
python3 - <<'PYTHON'
import re
import tarfile
from urllib.request import urlopen

index = urlopen("https://pypi.org/simple/torch-scatter/").read().decode()
(link,) = re.findall(r'href="([^"#]*/torch_scatter-2\.1\.2\.tar\.gz)', index)
with tarfile.open(fileobj=urlopen(link), mode="r|gz") as archive:
    for member in archive:
        if member.name.endswith("cuda/atomics.cuh"):
            open("atomics.cuh", "wb").write(archive.extractfile(member).read())
PYTHON
echo "torch-scatter 2.1.2, $(g++ --version | head -n 1)"

cat >run.cpp <<'CPP'
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#define __device__
#define USE_ROCM // without CUDA's own atomics of half
using std::max, std::min;
// One thread after the other, so that each compare-and-swap succeeds.
template <class Word, class Value> Word atomicCAS(Word *address, Word expected, Value value) {
  const Word old = *address;
  if (old == expected) *address = value;
  return old;
}
template <class Number> void atomicAdd(Number *address, Number value) { *address += value; }
template <class Number> void atomicMax(Number *address, Number value) { *address = max(*address, value); }
template <class Number> void atomicMin(Number *address, Number value) { *address = min(*address, value); }
template <class To, class From> To copy_bits(From value) { To to; std::memcpy(&to, &value, sizeof to); return to; }
int __float_as_int(float value) { return copy_bits<int>(value); }
float __int_as_float(int value) { return copy_bits<float>(value); }
unsigned long long __double_as_longlong(double value) { return copy_bits<unsigned long long>(value); }
double __longlong_as_double(unsigned long long value) { return copy_bits<double>(value); }
namespace at { // the half types are declared, and not used
template <int> struct narrow_float { unsigned short x; narrow_float(float = 0) {} operator float() const { return 0; } };
using Half = narrow_float<0>;
using BFloat16 = narrow_float<1>;
}
#include "atomics.cuh"

template <class Number> void show(const char *title, Number start, void (*update)(Number *, Number), Number value) {
  alignas(8) Number elements[4] = {start, start, start, start};
  std::printf("%s:", title);
  for (int i = 0; i < 4; i++) update(elements + i, value);
  for (Number element : elements) std::printf(" %d", int(element));
  std::printf(", and first alone:");
  for (Number &element : elements) element = start;
  update(elements, value);
  for (Number element : elements) std::printf(" %d", int(element));
  std::printf("\n");
}

int main() {
  show<int8_t>("maximum of int8 -128 and -5", -128, atomMax, -5);
  show<int16_t>("maximum of int16 -32768 and -5", -32768, atomMax, -5);
  show<int32_t>("maximum of int32 -32768 and -5", -32768, atomMax, -5);
  show<int8_t>("minimum of int8 127 and -5", 127, atomMin, -5);
  show<int8_t>("product of int8 1 and -5", 1, atomMul, -5);
  show<uint8_t>("product of uint8 16 and 17", 16, atomMul, 17);
  show<uint8_t>("maximum of uint8 0 and 5", 0, atomMax, 5);
}
CPP
g++ -std=c++17 -O1 -w run.cpp -o run
./run | tee seen

expected='maximum of int8 -128 and -5: -5 -1 -1 -1, and first alone: -5 -1 -1 -1
maximum of int16 -32768 and -5: -5 -1 -5 -1, and first alone: -5 -1 -32768 -32768
maximum of int32 -32768 and -5: -5 -5 -5 -5, and first alone: -5 -32768 -32768 -32768
minimum of int8 127 and -5: -5 -5 -5 -5, and first alone: -5 -1 -1 -1
product of int8 1 and -5: -5 5 5 5, and first alone: -5 -1 -1 -1
product of uint8 16 and 17: 16 33 33 33, and first alone: 16 17 16 16
maximum of uint8 0 and 5: 5 5 5 5, and first alone: 5 0 0 0'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
