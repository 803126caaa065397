#!/usr/bin/env bash
# Guess, written after the first sign: clang runs `#pragma omp target teams loop` on all threads of the GPU, as
# `distribute parallel for`, whatever the iterations do. `loop` says that they are independent.
# What happens: not if an iteration calls a function, fabsf() or sqrtf() or one's own of the same file. Then thread 0 of
# each team runs all of the team's iterations, one after the other; the others exit. No warning is given, and
# `distribute parallel for` of the same body uses all. With -fopenmp-assume-no-nested-parallelism so does `loop`.
# Version: the clang 22.1.8 of ziglang 0.17.1, for sm_90. Seen on 1 December 2026.
# Why it matters: a warp loads one float with a request where 32 lanes would load 128 bytes: 32 times the requests, and 8
# times the sectors asked for. The function is inlined, so its absence from the machine code tells nothing.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages ziglang==0.17.1
PATH="$work/packages/ziglang:$PATH"
zig clang --version | head -n 1

cat >loops.c <<'C'
float fabsf(float), sqrtf(float);
#pragma omp begin declare target
static float scale(float value) { return 2 * value; }
#pragma omp end declare target
#define PRAGMA(TEXT) _Pragma(#TEXT)
#define LOOP(NAME, DIRECTIVE, VALUE)                                               \
  void NAME(float *output, const float *source, int n) {                           \
    PRAGMA(omp target teams DIRECTIVE map(from: output[:n]) map(to: source[:n]))   \
    for (int i = 0; i < n; i++) output[i] = VALUE;                                 \
  }
LOOP(loop_of_product, loop, 2 * source[i])
LOOP(loop_of_scale, loop, scale(source[i]))
LOOP(loop_of_fabsf, loop, fabsf(source[i]))
LOOP(loop_of_sqrtf, loop, sqrtf(source[i]))
LOOP(parallel_for_of_scale, distribute parallel for, scale(source[i]))
LOOP(parallel_for_of_fabsf, distribute parallel for, fabsf(source[i]))
int main(void) { return 0; }
C

# A kernel that is parallel calls __kmpc_parallel_60. One that is not lets thread 0 pass alone.
show_kernels() {
  zig clang -O2 -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda --offload-arch=sm_90 -w -nogpulib -nogpuinc \
    --offload-device-only -S -emit-llvm "$@" loops.c -o loops.ll
  awk '/^define .*ptx_kernel/ { name = $0; lanes = "thread 0 alone"
      sub(/.*__omp_offloading_[0-9a-f]+_[0-9a-f]+_/, "", name); sub(/_l[0-9]+\(.*/, "", name) }
    name && /call .*@__kmpc_parallel_60/ { lanes = "all threads" }
    name && /^}/ { print name ": " lanes; name = "" }' loops.ll
}
{
  show_kernels
  echo 'with -fopenmp-assume-no-nested-parallelism:'
  show_kernels -fopenmp-assume-no-nested-parallelism
} | tee seen

expected='loop_of_product: all threads
loop_of_scale: thread 0 alone
loop_of_fabsf: thread 0 alone
loop_of_sqrtf: thread 0 alone
parallel_for_of_scale: all threads
parallel_for_of_fabsf: all threads
with -fopenmp-assume-no-nested-parallelism:
loop_of_product: all threads
loop_of_scale: all threads
loop_of_fabsf: all threads
loop_of_sqrtf: all threads
parallel_for_of_scale: all threads
parallel_for_of_fabsf: all threads'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
