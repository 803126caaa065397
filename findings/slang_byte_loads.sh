#!/usr/bin/env bash
# Guess: Load4() of Slang's ByteAddressBuffer, whose addresses are multiples of 4, is four loads of 4 bytes in CUDA.
# LoadAligned<float4>(), which promises a multiple of 16, is one of 16. Buffers of half4 are read with 8 bytes at once.
# What happens: Load4() and LoadAligned() are both 16 loads of one byte, and Load() of one number is four. The CUDA C++
# that slangc writes copies with memcpy(). Store4() is four stores of 4 bytes. A half4 is loaded with four loads of 2
# bytes, and stored with two of 4. A float4 takes one of 16.
# Version: slangc 2026.14.1 (slangtorch 1.3.22), nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: the lanes of each byte's load lie 16 bytes apart. A warp asks for each of its 16 sectors 16 times, and
# the promise of alignment changes nothing. A StructuredBuffer<float4> coalesces.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" slangtorch==1.3.22 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 \
  nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$work/packages/slangtorch/bin:$PATH"
export LD_LIBRARY_PATH="$work/packages/slangtorch/bin"
chmod +x "$work/packages/slangtorch/bin/slangc"
slangc -v 2>&1
nvcc --version | grep release

cat >"$work/kernels.slang" <<'SLANG'
#define KERNEL(NAME, SOURCE, OUTPUT, COPY) [shader("compute")] [numthreads(128, 1, 1)] \
  void NAME(uint3 thread : SV_DispatchThreadID, uniform SOURCE source, uniform OUTPUT output) { uint i = thread.x; COPY; }

KERNEL(floats, StructuredBuffer<float4>, RWStructuredBuffer<float4>, output[i] = source[i])
KERNEL(halves, StructuredBuffer<half4>, RWStructuredBuffer<half4>, output[i] = source[i])
KERNEL(load, ByteAddressBuffer, RWStructuredBuffer<uint>, output[i] = source.Load(4 * i))
KERNEL(load_4, ByteAddressBuffer, RWStructuredBuffer<uint4>, output[i] = source.Load4(16 * i))
KERNEL(load_aligned, ByteAddressBuffer, RWStructuredBuffer<float4>, output[i] = source.LoadAligned<float4>(16 * i))
KERNEL(store_4, StructuredBuffer<uint4>, RWByteAddressBuffer, output.Store4(16 * i, source[i]))
SLANG

slangc "$work/kernels.slang" -target cuda -o "$work/kernels.cu"
nvcc -cubin -arch=sm_90 -DSLANG_CUDA_ENABLE_HALF=1 -w "$work/kernels.cu" -o "$work/kernels.cubin"
for kernel in floats halves load load_4 load_aligned store_4; do
  nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
    grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
    awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
done | tee "$work/seen"

expected='floats: 1 LDG.E.128.CONSTANT 1 STG.E.128
halves: 4 LDG.E.U16.CONSTANT 2 STG.E
load: 4 LDG.E.U8 1 STG.E
load_4: 16 LDG.E.U8 1 STG.E.128
load_aligned: 16 LDG.E.U8 1 STG.E.128
store_4: 1 LDG.E.128.CONSTANT 4 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
