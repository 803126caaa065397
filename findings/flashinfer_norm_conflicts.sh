#!/usr/bin/env bash
# Guess: FlashInfer's fused residual addition and RMSNorm keeps a row of float32 in shared memory
# without bank conflicts. Neighbouring lanes own neighbouring pieces of it.
# What happens: of float16 a thread owns 8 elements, 32 bytes as float32. It accesses them 16 bytes
# at once, so lanes are 32 bytes apart: 8 passes instead of 4. Of float32 a thread owns 4 elements,
# and loads of 16 bytes have no conflicts. nvcc splits their stores into two of 8 bytes: 4 passes
# each instead of 2.
# Version: FlashInfer 0.7.4 (flashinfer-python), nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: the widest access of float16 in global memory is twice too wide for its float32
# copy in shared memory. Half of the passes there are conflicts, though lanes access neighbouring
# pieces.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release
# Only headers are needed of the package, which unpacks to 900 MB.
python3 -m pip download -qq --no-deps --only-binary :all: --dest "$work" flashinfer-python==0.7.4
python3 - "$work" <<'PYTHON'
import sys
from pathlib import Path
from zipfile import ZipFile

(wheel,) = Path(sys.argv[1]).glob("*.whl")
with ZipFile(wheel) as files:
    files.extractall(sys.argv[1], [name for name in files.namelist() if name.startswith("flashinfer/data/include/")])
PYTHON
mkdir "$work/empty" # its headers include those of cuBLAS and cuRAND, and norm.cuh uses nothing of them
touch "$work"/empty/{cublasLt,cublas_v2,curand_kernel}.h

cat >"$work/kernel.cu" <<'CUDA'
#include <flashinfer/norm.cuh>

template __global__ void flashinfer::norm::FusedAddRMSNormKernel<16 / sizeof(NUMBER), NUMBER>(
    NUMBER *, NUMBER *, NUMBER *, unsigned, unsigned, unsigned, float, float);
CUDA
cat >"$work/count_passes.py" <<'PYTHON'
import re
import sys
from collections import Counter

kind, apart = sys.argv[1], int(sys.argv[2])  # apart: bytes from a lane's piece to the next lane's
for access, width in re.findall(r"\b((?:STS|LDS)\.(64|128))\b", sys.stdin.read()):
    ideal = int(width) // 32  # passes of a warp; each serves lanes that access 128 bytes
    units = 32 // ideal
    passes = ideal * max(Counter(lane * apart * 8 // int(width) % units for lane in range(units)).values())
    print(f"{kind}: {access}, lanes {apart} bytes apart, {passes} passes instead of {ideal}")
PYTHON

for kind in half float; do
  if [ $kind = half ]; then apart=32; else apart=16; fi
  nvcc -cubin -arch=sm_90 -std=c++17 -DNUMBER=$kind -I "$work/packages/nvidia/cu13/include/cccl" \
    -I "$work/flashinfer/data/include" -I "$work/empty" "$work/kernel.cu" -o "$work/kernel.cubin" 2>/dev/null
  nvdisasm -c "$work/kernel.cubin" | python3 "$work/count_passes.py" $kind $apart | sort | uniq -c | sed 's/^ *//'
done | tee "$work/seen"

expected='6 half: LDS.128, lanes 32 bytes apart, 8 passes instead of 4
6 half: STS.128, lanes 32 bytes apart, 8 passes instead of 4
5 float: LDS.128, lanes 16 bytes apart, 4 passes instead of 4
10 float: STS.64, lanes 16 bytes apart, 4 passes instead of 2'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
