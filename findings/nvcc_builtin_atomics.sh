#!/usr/bin/env bash
# Guess: nvcc's built-in __nv_atomic_fetch_add() becomes what atomicAdd() does, for each
# architecture. That is REDG in global memory if the result is unused, and ATOMS in shared memory.
# Relaxed loads are LDG and LDS.
# What happens: so it is for sm_100. For sm_90 all are generic: LD, ST and ATOM. So is an addition
# whose result nobody uses, or one to an array in shared memory. A float brings code for shared
# memory into a kernel that has none.
# Version: nvcc, nvdisasm and the headers of CUDA 13.5.37, sm_90 and sm_100.
# Why it matters: a change from atomicAdd() to the newer built-in changes the kind of request.
# Metrics of REDG, ATOMS or LDG miss it. One source has other kinds of requests on an H200 than on a
# B200.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#define KERNEL(NAME, TYPE) extern "C" __global__ void NAME(TYPE *numbers)
#define RELAXED __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE

KERNEL(usual_add, int) { atomicAdd(numbers + threadIdx.x / 2, 3); }
KERNEL(builtin_add, int) { __nv_atomic_fetch_add(numbers + threadIdx.x / 2, 3, RELAXED); }
KERNEL(builtin_add_float, float) { __nv_atomic_fetch_add(numbers + threadIdx.x / 2, 3.f, RELAXED); }
KERNEL(builtin_load_and_store, int) {
  __nv_atomic_store_n(numbers + threadIdx.x, __nv_atomic_load_n(numbers + 32 + threadIdx.x, RELAXED), RELAXED);
}
KERNEL(usual_shared_add, int) {
  __shared__ int shared[32];
  asm volatile("" : : "l"(shared) : "memory"); // stands for the code that sets and reads the array
  atomicAdd(shared + threadIdx.x / 2, numbers[threadIdx.x]);
}
KERNEL(builtin_shared_add, int) {
  __shared__ int shared[32];
  asm volatile("" : : "l"(shared) : "memory");
  __nv_atomic_fetch_add(shared + threadIdx.x / 2, numbers[threadIdx.x], RELAXED);
}
CUDA

for arch in sm_90 sm_100; do
  nvcc -cubin -arch=$arch "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in usual_add builtin_add builtin_add_float builtin_load_and_store usual_shared_add builtin_shared_add; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\//p" |
      grep -oE '\<(LD|LDG|LDS|ST|STG|STS|RED|REDG|ATOM|ATOMG|ATOMS)\>[.A-Z0-9]*' | sort -u |
      awk -v name="$arch $kernel:" '{ name = name " " $1 } END { print name }'
  done
done | tee "$work/seen"

expected='sm_90 usual_add: REDG.E.ADD.STRONG.GPU
sm_90 builtin_add: ATOM.E.ADD.S32.STRONG.GPU
sm_90 builtin_add_float: ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU ATOM.E.CAST.SPIN.STRONG.SM ATOMS.CAST.SPIN LD.E LDS ST.E
sm_90 builtin_load_and_store: LD.E.STRONG.GPU ST.E.STRONG.GPU
sm_90 usual_shared_add: ATOMS.ADD LDG.E
sm_90 builtin_shared_add: ATOM.E.ADD.S32.STRONG.GPU LDG.E
sm_100 usual_add: REDG.E.ADD.STRONG.GPU
sm_100 builtin_add: REDG.E.ADD.STRONG.GPU
sm_100 builtin_add_float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_100 builtin_load_and_store: LDG.E.STRONG.GPU STG.E.STRONG.GPU
sm_100 usual_shared_add: ATOMS.ADD LDG.E
sm_100 builtin_shared_add: ATOMS.ADD LDG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
