#!/usr/bin/env bash
# Guess: of `b ? streaming[i] : persisting[i]`, two cuda::annotated_ptr, each load has its pointer's cache policy. Beside a
# plain pointer only the annotated load has one.
# What happens: up to sm_90 nvcc makes one load of both, with the policy register of one branch. The other branch never
# writes that register: its loads have whatever it holds. A plain pointer's load gets the hint, too. `if` is alike. For
# sm_100 each load has its own policy, and so have stores and loads in different expressions for sm_90.
# Version: nvcc 13.5.37, libcu++ of nvidia-cuda-cccl 13.3.5.0.6. Seen on 30 November 2026.
# Why it matters: a kernel that keeps the first part of an array in L2 and streams the rest does neither, and nothing
# says so. Machine code shows a descriptor at each load, with a hint or without, so a listing does not tell.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/annotated_ptr>

template <class Property> using annotated = cuda::annotated_ptr<const float, Property>;
using streaming_source = annotated<cuda::access_property::streaming>;
using persisting_source = annotated<cuda::access_property::persisting>;

#define KERNEL(NAME, FIRST, SECOND, BODY) \
  extern "C" __global__ void NAME(float *output, FIRST first, SECOND second, bool b) { const int i = threadIdx.x; BODY; }
KERNEL(both_annotated, streaming_source, persisting_source, output[i] = b ? first[i] : second[i])
KERNEL(both_by_if, streaming_source, persisting_source, float x; if (b) x = first[i]; else x = second[i]; output[i] = x)
KERNEL(first_annotated, streaming_source, const float *, output[i] = b ? first[i] : second[i])
KERNEL(second_annotated, const float *, persisting_source, output[i] = b ? first[i] : second[i])
KERNEL(expressions, streaming_source, persisting_source, output[i] = b ? 2 * first[i] : second[i] + 3)
CUDA
cat >"$work/show.py" <<'PYTHON'
import re
import sys

for name, body in re.findall(r"\.entry (\w+)\((.*?)\n}", open(sys.argv[2]).read(), re.DOTALL):
    policies = re.findall(r"createpolicy\.fractional\.L2::(\w+)\.b64 (%rd\d+)", body)
    loads = []
    for operands in re.findall(r"ld\.global(.*);", body):
        register = re.search(r", (%rd\d+)$", operands)
        loads.append("/".join(policy for policy, to in policies if register and to == register[1]) or "no policy")
    print(f"{sys.argv[1]} {name}:", ", ".join(sorted(loads)))
PYTHON

for architecture in sm_80 sm_90 sm_100; do
  nvcc -ptx "-arch=$architecture" -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.ptx"
  python3 "$work/show.py" $architecture "$work/kernels.ptx"
done | tee "$work/seen"

expected=$(for architecture in sm_80 sm_90 sm_100; do
  both='evict_first, evict_last' first='evict_first, no policy' second='evict_last, no policy'
  if [ $architecture != sm_100 ]; then both=evict_first first=evict_first second=evict_last; fi
  echo "$architecture both_annotated: $both
$architecture both_by_if: $both
$architecture first_annotated: $first
$architecture second_annotated: $second
$architecture expressions: evict_first, evict_last"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
