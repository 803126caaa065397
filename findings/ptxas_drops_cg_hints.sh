#!/usr/bin/env bash
# Guess: ld.global.cg.nc reads past L1, as .cg does by the PTX manual. The options -dlcm=cg and -flcm=cg, "default" and
# "forced" modifier of loads, do so for all loads that nvcc makes.
# What happens: ld.global.cg.nc, .ca.nc and .nc are the same instruction, bit by bit: LDG.CONSTANT, which reads L1. With
# either option __ldg() and const __restrict__ arrays stay LDG.CONSTANT; only plain and generic loads change. The option
# with cs does change them, and L1::no_allocate with .nc has an instruction of its own.
# Version: nvcc, ptxas and nvdisasm 13.5.37, sm_80, sm_90 and sm_100. Seen on 30 November 2026.
# Why it matters: a benchmark that turns L1 off by -Xptxas -dlcm=cg reads its constant arrays through L1. On an H200, with
# nvcc 13.0.88, a dependent load in 2 KiB took 31 cycles with .nc and .cg.nc, and more than 1000 with .cg. With the option
# one of a __restrict__ array took 41.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#define ASSEMBLY(NAME, LOAD) \
  extern "C" __global__ void NAME(float *output, const float *source) { \
    float value; \
    asm volatile(LOAD " %0, [%1];" : "=f"(value) : "l"(__cvta_generic_to_global(source + threadIdx.x))); \
    output[threadIdx.x] = value; \
  }
ASSEMBLY(assembly_cg, "ld.global.cg.f32")
ASSEMBLY(assembly_nc, "ld.global.nc.f32")
ASSEMBLY(assembly_ca_nc, "ld.global.ca.nc.f32")
ASSEMBLY(assembly_cg_nc, "ld.global.cg.nc.f32")
ASSEMBLY(assembly_cs_nc, "ld.global.cs.nc.f32")
ASSEMBLY(assembly_no_allocate, "ld.global.nc.L1::no_allocate.f32")
extern "C" __global__ void plain(float *output, const float *source) { output[threadIdx.x] = source[threadIdx.x]; }
extern "C" __global__ void ldg(float *output, const float *source) { output[threadIdx.x] = __ldg(source + threadIdx.x); }
extern "C" __global__ void constant_restrict(float *__restrict__ output, const float *__restrict__ source) {
  output[threadIdx.x] = source[threadIdx.x];
}
CUDA

# list_loads ARCHITECTURE KERNELS OPTION...: the load of each kernel, and its two words of machine code
list_loads() {
  architecture=$1 kernels=$2
  shift 2
  nvcc -cubin "-arch=$architecture" "$@" "$work/kernels.cu" -o "$work/kernels.cubin"
  nvdisasm -c -hex "$work/kernels.cubin" >"$work/listing"
  for kernel in $kernels; do
    sed -n "/^\.text\.$kernel:/,/EXIT/p" "$work/listing" | grep -A1 'LDG' | tr -d '\n' |
      sed -E "s|.*(LDG[.A-Z0-9]*).*/\* (0x[0-9a-f]*).*/\* (0x[0-9a-f]*).*|$architecture $* $kernel: \1 \2 \3|; s|  *| |g"
    echo
  done
}

{
  for architecture in sm_80 sm_90 sm_100; do
    list_loads $architecture "$(sed -n 's/^ASSEMBLY(\(\w*\),.*/\1/p' "$work/kernels.cu")" | cut -d ' ' -f 1-3
    # 1 if all three are the same machine code
    list_loads $architecture 'assembly_nc assembly_ca_nc assembly_cg_nc' | grep -o 'LDG.* 0x.* 0x.*' | sort -u | wc -l
  done
  for option in -dlcm=cg -flcm=cg -dlcm=cs; do
    list_loads sm_90 'plain ldg constant_restrict' -Xptxas $option | cut -d ' ' -f 1-5
  done
} | tee "$work/seen"

expected="$(for architecture in sm_80 sm_90 sm_100; do
  echo "$architecture assembly_cg: LDG.E.STRONG.GPU
$architecture assembly_nc: LDG.E.CONSTANT
$architecture assembly_ca_nc: LDG.E.CONSTANT
$architecture assembly_cg_nc: LDG.E.CONSTANT
$architecture assembly_cs_nc: LDG.E.EF.CONSTANT
$architecture assembly_no_allocate: LDG.E.NA.CONSTANT
1"
done)
sm_90 -Xptxas -dlcm=cg plain: LDG.E.STRONG.GPU
sm_90 -Xptxas -dlcm=cg ldg: LDG.E.CONSTANT
sm_90 -Xptxas -dlcm=cg constant_restrict: LDG.E.CONSTANT
sm_90 -Xptxas -flcm=cg plain: LDG.E.STRONG.GPU
sm_90 -Xptxas -flcm=cg ldg: LDG.E.CONSTANT
sm_90 -Xptxas -flcm=cg constant_restrict: LDG.E.CONSTANT
sm_90 -Xptxas -dlcm=cs plain: LDG.E.EF
sm_90 -Xptxas -dlcm=cs ldg: LDG.E.EF.CONSTANT
sm_90 -Xptxas -dlcm=cs constant_restrict: LDG.E.EF.CONSTANT"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
