#!/usr/bin/env bash
# Guess: Load<T>(i * sizeof(T)) of a ByteAddressBuffer reads element i of an array of the struct T, as
# StructuredBuffer<T> does. DXC documents that both have one layout.
# What happens: in CUDA code it does not. A bool has one byte in sizeof(T) and in a StructuredBuffer, and four in
# Load(): a float after a bool and a uint16_t is read at byte 8 of 8, which is the next element. A float4 after a float
# is at byte 16 of 32 in a StructuredBuffer, and at byte 4 of 20 in Load() and sizeof(T). A float and a float2 have
# 16 bytes there and 12 here. A float and a float3 agree.
# Version: slangc 2026.14.1 (slangtorch 1.3.22), nvcc 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: wrong values without a warning. For the first struct no array of the host suits Load(), whose members
# overlap the next element. For the others no array suits both kernels, and sizeof(T) is not the StructuredBuffer's.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" slangtorch==1.3.22 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$work/packages/slangtorch/bin:$PATH"
export LD_LIBRARY_PATH="$work/packages/slangtorch/bin"
chmod +x "$work/packages/slangtorch/bin/slangc"
slangc -v 2>&1
nvcc --version | grep release

cat >"$work/kernels.slang" <<'SLANG'
struct Flagged { bool flag; uint16_t count; float last; };
struct Flags { bool3 flags; float last; };
struct Vector4 { float first; float4 last; };
struct Vector2 { float first; float2 last; };
struct Vector3 { float first; float3 last; };
#define KERNEL(NAME, SOURCE, VALUE) [shader("compute")] [numthreads(128, 1, 1)] \
  void NAME(uint3 thread : SV_DispatchThreadID, uniform SOURCE source, uniform RWStructuredBuffer<float> output) \
  { uint i = thread.x; output[i] = VALUE; }
#define BOTH(TYPE, MEMBER) KERNEL(structured_##TYPE, StructuredBuffer<TYPE>, source[i].MEMBER) \
  KERNEL(bytes_##TYPE, ByteAddressBuffer, source.Load<TYPE>(i * sizeof(TYPE)).MEMBER)
BOTH(Flagged, last)
BOTH(Flags, last)
BOTH(Vector4, last.x)
BOTH(Vector2, last.x)
BOTH(Vector3, last.x)
SLANG

cd "$work"
for struct in Flagged Flags Vector4 Vector2 Vector3; do
  # In PTX the structured kernel multiplies the index by the element's bytes, and adds the member's place. The CUDA C++
  # of the other kernel states both.
  slangc kernels.slang -entry structured_$struct -stage compute -target cuda -o kernel.cu
  nvcc -ptx -arch=sm_90 -w kernel.cu -o kernel.ptx
  bytes=$(grep -oP 'mul\.wide\.u32.*, \K\d+' kernel.ptx | tail -n 1)
  place=$(grep -oP 'ld\.global\.nc\.\S+.*\[%rd\d+\K[^]]*' kernel.ptx | tail -n 1)
  place=${place:-$(grep -oP 'add\.s64.*, \K\d+(?=;)' kernel.ptx | tail -n 1)}
  echo "StructuredBuffer<$struct>: byte ${place#+} of $bytes"
  slangc kernels.slang -entry bytes_$struct -stage compute -target cuda -o kernel.cu
  bytes=$(grep -oP 'uint _S\d+ = i_\d+ \* \K\d+' kernel.cu)
  place=$(grep -oP 'Load<float >\(_S\d+ \+ \K\d+' kernel.cu | head -n 1)
  echo "Load<$struct>: byte $place of $bytes"
done | tee seen

expected='StructuredBuffer<Flagged>: byte 4 of 8
Load<Flagged>: byte 8 of 8
StructuredBuffer<Flags>: byte 4 of 8
Load<Flags>: byte 12 of 8
StructuredBuffer<Vector4>: byte 16 of 32
Load<Vector4>: byte 4 of 20
StructuredBuffer<Vector2>: byte 8 of 16
Load<Vector2>: byte 4 of 12
StructuredBuffer<Vector3>: byte 4 of 16
Load<Vector3>: byte 4 of 16'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
