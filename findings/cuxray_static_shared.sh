#!/usr/bin/env bash
# Guess: the static shared memory and the blocks per multiprocessor that `cuxray report` prints of a cubin are those of
# ptxas -v and of its own command `cuxray occupancy`, which it documents as equal to NVIDIA's cuda_occupancy.h.
# What happens: it subtracts 1024 bytes, which CUDA reserves for each block, from the section of shared memory. From sm_90 on
# the section has them; on sm_80, sm_86 and sm_89 it does not. A tile of 20 KiB is 19 KiB there, and 8 blocks fit where
# 7 do, or 5 where 4 do. A kernel with 1 KiB has 0.
# Version: cuxray 0.6.0, nvcc, cuobjdump and nvdisasm 13.5.37. Seen on 30 November 2026.
# Why it matters: a build can be gated by these numbers. On an A100, an RTX 3090 or an RTX 4090 a tile that costs a block
# per multiprocessor looks free, as the step comes 1 KiB later in the report than on the GPU.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cuobjdump==13.5.37
python3 -m pip install -qq --target "$work/packages" cuxray==0.6.0
export PYTHONPATH="$work/packages" PATH="$work/packages/nvidia/cu13/bin:$PATH" HOME="$work"
python3 -m cuxray --version

cat >"$work/kernels.cu" <<'CUDA'
template <int elements> __device__ void shuffle(const float *input, float *output) {
  __shared__ float tile[elements];
  for (int k = threadIdx.x; k < elements; k += 64) tile[k] = input[k];
  __syncthreads();
  output[threadIdx.x] = tile[threadIdx.x * 7 % elements];
}
extern "C" __global__ void kib_1(const float *input, float *output) { shuffle<256>(input, output); }
extern "C" __global__ void kib_20(const float *input, float *output) { shuffle<5120>(input, output); }
CUDA

cat >"$work/read.py" <<'PYTHON'
import json
import subprocess
import sys

architecture, cubin, usage = sys.argv[1:]
declared = dict(line.split() for line in usage.splitlines())


def run(*arguments):
    return json.loads(subprocess.run([sys.executable, "-m", "cuxray", *arguments, "--json"], stdout=subprocess.PIPE).stdout)


for kernel in sorted(run("report", cubin, "--threads", "64")["units"][0]["kernels"], key=lambda kernel: kernel["name"]):
    reported, size = kernel["occupancy"], declared[kernel["name"]]
    whole = run("occupancy", "--arch", architecture, "--regs", "32", "--threads", "64", "--smem", size)
    print(f"{architecture} {kernel['name']}: ptxas {size} bytes, `cuxray occupancy` {whole['blocks_per_sm']} blocks, "
          f"`cuxray report` {reported['smem_static']} bytes and {reported['blocks_per_sm']} blocks")
PYTHON
for architecture in sm_80 sm_86 sm_89 sm_90; do
  usage=$(nvcc -cubin "-arch=$architecture" -Xptxas -v "$work/kernels.cu" -o "$work/kernels.cubin" 2>&1 |
    sed -nE "s/.*entry function '(\w+)'.*/\1/p; s/.* ([0-9]+) bytes smem.*/\1/p" | paste - -)
  python3 "$work/read.py" "$architecture" "$work/kernels.cubin" "$usage"
done | tee "$work/seen"

expected=$(for line in 'sm_80 32 7 8' 'sm_86 16 4 5' 'sm_89 24 4 5' 'sm_90 32 10 10'; do
  read -r architecture most blocks reported <<<"$line"
  small=0 large=19456
  if [ "$architecture" = sm_90 ]; then small=1024 large=20480; fi
  echo "$architecture kib_1: ptxas 1024 bytes, \`cuxray occupancy\` $most blocks, \`cuxray report\` $small bytes and $most blocks
$architecture kib_20: ptxas 20480 bytes, \`cuxray occupancy\` $blocks blocks, \`cuxray report\` $large bytes and $reported blocks"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
