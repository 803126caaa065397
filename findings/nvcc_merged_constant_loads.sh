#!/usr/bin/env bash
# Guess: of `i < k ? constant[i] : written[i - k]` only constant[i] may be an ld.global.nc, if constant alone is const and
# __restrict__. A value that the kernel stored to `written` before a barrier is read after it.
# What happens: up to sm_90 nvcc makes one ld.global.nc of both, though PTX allows it only for memory that no thread
# writes. ptxas moves it before the store and the barrier, or before an atomicAdd(). `if` is alike. For sm_100 and sm_120
# both loads stay, but a selected pointer is read too early there, too. __ldg() and a plain pointer are right.
# Version: nvcc and nvdisasm 13.5.37. Seen on 30 November 2026.
# Why it matters: results are wrong without a warning. On an H200, `selected` of nvcc 13.0.88 returned 7, which `written`
# held before, instead of the stored 1. With -Xptxas -O0 it returned 1.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#define KERNEL(NAME, CONSTANT, BODY) \
  extern "C" __global__ void NAME(float *output, CONSTANT constant, float *written, int k) { \
    const int i = threadIdx.x; \
    BODY; \
  }
#define SELECTED output[i] = i < k ? constant[i] : written[i - k]
KERNEL(plain, const float *, written[i] = 1; __syncthreads(); SELECTED)
KERNEL(selected, const float *__restrict__, written[i] = 1; __syncthreads(); SELECTED)
KERNEL(selected_atomic, const float *__restrict__, atomicAdd(written + i, 1); __syncthreads(); SELECTED)
KERNEL(selected_by_if, const float *__restrict__, written[i] = 1; __syncthreads();
       if (i < k) output[i] = constant[i]; else output[i] = written[i - k])
KERNEL(selected_pointer, const float *__restrict__, written[i] = 1; __syncthreads();
       const float *source = k ? constant : written; output[i] = source[i ^ 1])
KERNEL(selected_ldg, const float *, written[i] = 1; __syncthreads(); output[i] = i < k ? __ldg(constant + i) : written[i - k])
CUDA

kernels=$(sed -n 's/^KERNEL(\(\w*\),.*/\1/p' "$work/kernels.cu")
for architecture in sm_80 sm_90 sm_100 sm_120; do
  nvcc -cubin "-arch=$architecture" "$work/kernels.cu" -o "$work/kernels.cubin"
  nvdisasm -c "$work/kernels.cubin" >"$work/listing"
  for kernel in $kernels; do
    sed -n "/^\.text\.$kernel:/,/^\/\/---/p" "$work/listing" | grep -oE '(LDG|STG|REDG?|BAR)(\.E)?(\.CONSTANT)?' |
      awk -v line="$architecture $kernel:" '{ line = line " " $1 } END { print line }'
  done
done | tee "$work/seen"

expected=$(for architecture in sm_80 sm_90 sm_100 sm_120; do
  case $architecture in
    sm_80 | sm_90)
      early='LDG.E.CONSTANT STG.E BAR STG.E' late='STG.E BAR LDG.E STG.E' plain='STG.E BAR LDG.E STG.E' ;;
    *) early='LDG.E.CONSTANT STG.E BAR LDG.E STG.E' late=$early plain='STG.E BAR LDG.E LDG.E STG.E' ;;
  esac
  atomic=${early/STG.E/REDG.E}
  if [ $architecture = sm_80 ]; then atomic=${early/STG.E/RED.E}; fi
  echo "$architecture plain: $plain
$architecture selected: $early
$architecture selected_atomic: $atomic
$architecture selected_by_if: $early
$architecture selected_pointer: LDG.E.CONSTANT STG.E BAR STG.E
$architecture selected_ldg: $late"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
