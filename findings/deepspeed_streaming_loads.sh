#!/usr/bin/env bash
# Guess: load_global() of DeepSpeed's mem_access has the cache policy that its template argument names, with and without
# the predicate: CacheStreaming is "with evict first policy".
# What happens: of 16 bytes with the predicate it is ld.global.cg, the policy of CacheGlobal: L1 is left out, and nothing
# is evicted first. Of 2, 4 and 8 bytes, and without the predicate, it is ld.global.cs.
# Version: DeepSpeed 0.19.8, nvcc and nvdisasm 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: 16 bytes is the width that DeepSpeed's kernels use, and the predicate is what the last tile needs. Who
# compares policies there compares one with itself.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
# The sources are enough, so the link comes from the index.
python3 - <<'PYTHON'
import re
import tarfile
from urllib.request import urlopen

index = urlopen("https://pypi.org/simple/deepspeed/").read().decode()
(link,) = re.findall(r'href="([^"#]*/deepspeed-0\.19\.8\.tar\.gz)', index)
with tarfile.open(fileobj=urlopen(link), mode="r|gz") as archive:
    for member in archive:
        if "/csrc/includes/" in member.name:
            archive.extract(member, filter="data")
PYTHON
echo "DeepSpeed 0.19.8, $(nvcc --version | grep release)"

cat >kernels.cu <<'CUDA'
#include <memory_access_utils.h>
using mem_access::LoadPolicy;
#define KERNEL(BYTES, POLICY, NAME, ...) \
  extern "C" __global__ void NAME##_##POLICY##_##BYTES(char *output, const char *source, bool asked) { \
  alignas(16) char value[BYTES]; \
  mem_access::load_global<BYTES, LoadPolicy::POLICY>(value, source + threadIdx.x * BYTES __VA_ARGS__); \
  mem_access::store_global<BYTES>(output + threadIdx.x * BYTES, value); \
}
#define KERNELS(BYTES, POLICY) KERNEL(BYTES, POLICY, always) KERNEL(BYTES, POLICY, predicated, , asked)
KERNELS(4, CacheGlobal) KERNELS(8, CacheGlobal) KERNELS(16, CacheGlobal)
KERNELS(4, CacheStreaming) KERNELS(8, CacheStreaming) KERNELS(16, CacheStreaming)
CUDA
nvcc -cubin -arch=sm_90 -std=c++17 -w -I deepspeed-0.19.8/csrc/includes -I packages/nvidia/cu13/include/cccl kernels.cu -o kernels.cubin
for policy in CacheGlobal CacheStreaming; do
  for bytes in 4 8 16; do
    for form in always predicated; do
      nvdisasm -c kernels.cubin | sed -n "/^\.text\.${form}_${policy}_$bytes:/,/^\/\/---/p" | grep -oE '\bLDG\.[.A-Z0-9]+' |
        awk -v line="$policy, $bytes bytes, $form:" '{ line = line " " $1 } END { print line }'
    done
  done
done | tee seen

expected='CacheGlobal, 4 bytes, always: LDG.E.STRONG.GPU
CacheGlobal, 4 bytes, predicated: LDG.E.STRONG.GPU
CacheGlobal, 8 bytes, always: LDG.E.64.STRONG.GPU
CacheGlobal, 8 bytes, predicated: LDG.E.64.STRONG.GPU
CacheGlobal, 16 bytes, always: LDG.E.128.STRONG.GPU
CacheGlobal, 16 bytes, predicated: LDG.E.128.STRONG.GPU
CacheStreaming, 4 bytes, always: LDG.E.EF
CacheStreaming, 4 bytes, predicated: LDG.E.EF
CacheStreaming, 8 bytes, always: LDG.E.EF.64
CacheStreaming, 8 bytes, predicated: LDG.E.EF.64
CacheStreaming, 16 bytes, always: LDG.E.EF.128
CacheStreaming, 16 bytes, predicated: LDG.E.128.STRONG.GPU'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
