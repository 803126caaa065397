#!/usr/bin/env bash
# Guess: RAFT's atomicMax() of a float stores the larger of two floats, as fmaxf() gives it and as its atomicMin() and its
# atomicMax() of double do.
# What happens: -0.0 never replaces a negative value. Whatever is >= 0 is compared as a signed integer, and -0.0 is >= 0,
# while its bits are the smallest integer. So the maximum of -1e30 and -0.0 is -1e30. 0.0 is right.
# Version: libraft-cu13 26.10.0, its device_atomics.cuh run on the CPU by GCC and compiled by nvcc 13.5.37 for sm_90. Seen
# on 30 November 2026.
# Why it matters: -0.0 is what a product of a negative number and 0 is, or one that underflows. RAFT's max_duplicates()
# and atomic_max_op use it, and leave the largest value out. Two atomics of integers instead of a loop of
# compare-and-swap are faster, so this code is copied; others, such as CUTLASS, ask for the sign instead.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages libraft-cu13==26.10.0 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
echo "libraft-cu13 26.10.0, $(nvcc --version | grep release)"

mkdir alone # what the header takes from CUDA, for GCC
cat >alone/cooperative_groups.h <<'CPP'
namespace cooperative_groups {
struct group { unsigned size(), thread_rank(); template <class Word> Word shfl(Word, int); };
group coalesced_threads();
}
CPP
cat >run.cpp <<'CPP'
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#define __device__
#define __forceinline__ inline
using std::isnan;
template <class To, class From> To copy_bits(From value) { To to; std::memcpy(&to, &value, sizeof to); return to; }
int __float_as_int(float value) { return copy_bits<int>(value); }
unsigned __float_as_uint(float value) { return copy_bits<unsigned>(value); }
float __int_as_float(int value) { return copy_bits<float>(value); }
float __uint_as_float(unsigned value) { return copy_bits<float>(value); }
// CUDA's atomics, one thread after the other
#define ATOMICS(INTEGER) \
  INTEGER atomicMax(INTEGER *address, INTEGER value) { INTEGER old = *address; *address = std::max(old, value); return old; } \
  INTEGER atomicMin(INTEGER *address, INTEGER value) { INTEGER old = *address; *address = std::min(old, value); return old; } \
  INTEGER atomicCAS(INTEGER *address, INTEGER expected, INTEGER value) \
    { INTEGER old = *address; if (old == expected) *address = value; return old; }
ATOMICS(int) ATOMICS(unsigned) ATOMICS(unsigned long long)
#define OTHER(NAME) template <class Word> Word NAME(Word *address, Word value);
OTHER(atomicAdd) OTHER(atomicAnd) OTHER(atomicOr) OTHER(atomicXor)
#include <raft/util/device_atomics.cuh>

template <class Number> void show(const char *type, Number first, Number second) {
  Number maximum = first, minimum = first;
  atomicMax(&maximum, second);
  atomicMin(&minimum, second);
  std::printf("%s %g and %g: maximum %g, minimum %g\n", type, double(first), double(second), double(maximum), double(minimum));
}
int main() {
  show("float", -1e30f, -0.0f);
  show("float", -1e30f, 0.0f);
  show("float", -2.0f, -1.0f);
  show("float", -2.0f, -1e-30f * 1e-30f);
  show("double", -1e30, -0.0);
}
CPP
g++ -std=c++17 -w -O1 -fno-strict-aliasing -I alone -I packages/libraft/include run.cpp -o run
cat >kernel.cu <<'CUDA'
#include <raft/util/device_atomics.cuh>
extern "C" __global__ void maximum(float *output, float value) { atomicMax(output, value); }
CUDA
nvcc -ptx -arch=sm_90 -std=c++17 -I packages/libraft/include -I packages/nvidia/cu13/include/cccl kernel.cu -o kernel.ptx
{
  ./run
  grep -oE '(setp|atom|red)\.[.a-z0-9]+' kernel.ptx | xargs
} | tee seen

expected='float -1e+30 and -0: maximum -1e+30, minimum -1e+30
float -1e+30 and 0: maximum 0, minimum -1e+30
float -2 and -1: maximum -1, minimum -2
float -2 and -0: maximum -2, minimum -2
double -1e+30 and -0: maximum -0, minimum -1e+30
setp.gtu.f32 setp.ltu.f32 atom.global.min.u32 atom.global.max.s32'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
