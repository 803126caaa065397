#!/usr/bin/env bash
# Guess: an array declared __device__ begins at an address that is a multiple of 256, as one of
# cudaMalloc() does. The CUDA C++ programming guide of 2024 says so of any variable in global
# memory.
# What happens: the address is aligned to the element's size alone. 1024 floats after an array of
# three begin 12 bytes after it. 4096 chars begin at byte 8209. PTX states no more, and ptxas packs
# arrays of __constant__, too.
# Version: nvcc and the headers of CUDA 13.5.37, sm_90 and sm_100.
# Why it matters: lanes that read 32 neighbouring floats touch 5 sectors instead of 4. The sizes of
# other arrays decide which arrays do. A cast to float4, valid for an array of cudaMalloc(), is not
# for this. __align__() helps.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" pyelftools==0.33
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
export PYTHONPATH="$work/packages" PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/arrays.cu" <<'CUDA'
__device__ float set_three[3] = {1, 2, 3};
__device__ float set_many[1024] = {1};
__device__ float three[3];
__device__ float many[1024];
__device__ char five_chars[5];
__device__ char many_chars[4096];
__device__ __align__(256) float aligned[1024];
__constant__ float three_constants[3] = {1, 2, 3};
__constant__ float many_constants[1024] = {1};
CUDA

cat >"$work/show.py" <<'PYTHON'
import sys

from elftools.elf.elffile import ELFFile

with open(sys.argv[1], "rb") as file:
    elf = ELFFile(file)
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_OBJECT" and not symbol.name.startswith("."):
            section = elf.get_section(symbol["st_shndx"])
            print(f"{section.name} {symbol.name}: at byte {symbol['st_value']}")
PYTHON
for arch in sm_90 sm_100; do
  nvcc -cubin -arch=$arch "$work/arrays.cu" -o "$work/arrays.cubin"
  python3 "$work/show.py" "$work/arrays.cubin" | sed "s/^/$arch /"
done | tee "$work/seen"

expected=$(for arch in sm_90 sm_100; do
  echo "$arch .nv.global.init set_three: at byte 0
$arch .nv.global.init set_many: at byte 12
$arch .nv.global three: at byte 4096
$arch .nv.global many: at byte 4108
$arch .nv.global five_chars: at byte 8204
$arch .nv.global many_chars: at byte 8209
$arch .nv.global aligned: at byte 0
$arch .nv.constant3 three_constants: at byte 0
$arch .nv.constant3 many_constants: at byte 12"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
