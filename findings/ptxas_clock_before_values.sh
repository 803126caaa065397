#!/usr/bin/env bash
# Guess: of `begin = clock64(); value = tile[i]; end = clock64();` the second clock is read when the value is there, if the
# value is used later. So do benchmarks of bank conflicts and of latency measure it.
# What happens: it is read when the load was issued. No instruction up to the clock waits for the value: of one load the
# time has none of its latency or conflicts, of a chain of four loads that of three. "memory" in assembly, an empty
# assembly with the value, a volatile load, __syncwarp() and __syncthreads() change nothing. A store of the value to
# shared memory does.
# Version: nvcc, ptxas and nvdisasm 13.5.37, sm_80, sm_90 and sm_100. Waits are in the bits of machine code that name the
# awaited barriers; NVIDIA does not document them, but research has since 2018. Seen on 30 November 2026.
# Why it matters: a load of 32 conflicting lanes and one of neighbours take equally long by this clock. PTX has the right
# order, and so has the listing.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#define KERNEL(NAME, BODY) \
  extern "C" __global__ void NAME(const int *input, int *output, long long *clocks, int step) { \
    __shared__ int tile[1024]; \
    const int i = threadIdx.x; \
    for (int k = i; k < 1024; k += 32) tile[k] = input[k]; \
    __syncthreads(); \
    long long begin, end; \
    int value, place = i * step; \
    BODY; \
    output[i] = value + tile[i]; \
    clocks[i] = end - begin; \
  }
#define CLOCK(NAME) NAME = clock64()
#define ASSEMBLY(NAME) asm volatile("mov.u64 %0, %%clock64;" : "=l"(NAME) : : "memory")
KERNEL(shared, CLOCK(begin); value = tile[place]; CLOCK(end))
KERNEL(global, CLOCK(begin); value = input[place]; CLOCK(end))
KERNEL(atomic, CLOCK(begin); value = atomicExch(tile + place, 1); CLOCK(end))
KERNEL(four, CLOCK(begin); value = tile[tile[tile[tile[place]]]]; CLOCK(end))
KERNEL(assembly, ASSEMBLY(begin); value = tile[place]; ASSEMBLY(end))
KERNEL(empty_assembly, CLOCK(begin); value = tile[place]; asm volatile("" : "+r"(value) : : "memory"); CLOCK(end))
KERNEL(volatile_load, CLOCK(begin); value = *(volatile int *)(tile + place); CLOCK(end))
KERNEL(syncwarp, CLOCK(begin); value = tile[place]; __syncwarp(); CLOCK(end))
KERNEL(syncthreads, CLOCK(begin); value = tile[place]; __syncthreads(); CLOCK(end))
KERNEL(store, CLOCK(begin); value = tile[place]; tile[i] = value; CLOCK(end))
CUDA

cat >"$work/waits.py" <<'PYTHON'
import re
import subprocess
import sys

kernels = {}
lines = subprocess.run(["nvdisasm", "-hex", "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True).stdout.splitlines()
for line, following in zip(lines, lines[1:]):
    if match := re.match(r"\.text\.(\w+):", line):
        instructions = kernels[match[1]] = []
    elif match := re.match(r"\s+/\*\w{4,}\*/\s+(.*?);", line):
        control = int(re.search(r"0x(\w{16})", following)[1], 16) >> 41
        instructions.append((match[1], control >> 5 & 7, control >> 11 & 63))  # barrier that it sets, barriers that it awaits
for name, instructions in kernels.items():
    first, *_, last = [n for n, (text, _, _) in enumerate(instructions) if "SR_CLOCK" in text]
    loads = [n for n in range(first, last) if re.search(r"\b(LDS|LDG|ATOMS)\b", instructions[n][0])]
    awaited = [n for n in loads if any(waits >> instructions[n][1] & 1 for _, _, waits in instructions[n + 1 : last + 1])]
    print(f"{sys.argv[2]} {name}: {len(loads)} loaded between the clocks, {len(awaited)} awaited")
PYTHON

for architecture in sm_80 sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" "$work/kernels.cu" -o "$work/kernels.cubin"
  python3 "$work/waits.py" "$work/kernels.cubin" "$architecture" | sort
done | tee "$work/seen"

expected=$(for architecture in sm_80 sm_90 sm_100; do
  for kernel in assembly atomic empty_assembly four global shared store syncthreads syncwarp volatile_load; do
    case $kernel in
      four) echo "$architecture $kernel: 4 loaded between the clocks, 3 awaited" ;;
      store) echo "$architecture $kernel: 1 loaded between the clocks, 1 awaited" ;;
      *) echo "$architecture $kernel: 1 loaded between the clocks, 0 awaited" ;;
    esac
  done
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
