#!/usr/bin/env bash
# Guess, written after the first sign: clang compiles `__cluster_dims__(2, 1, 1)` of a kernel to `.reqnctapercluster 2,
# 1, 1`, as nvcc does, or warns that it ignores the attribute, as of `__maxnreg__`. Its manual describes the attribute;
# for sm_80 it is an error.
# What happens: for sm_90 and sm_100 nothing is written and nothing is said, with -Wall, too. The third argument of
# __launch_bounds__ is kept: `.maxclusterrank`.
# Version: Debian's clang 22.1.8 (on Debian 12), headers of CUDA 13.5.37, nvcc 13.5.37. Seen on 1 December 2026.
# Why it matters: launched by <<<>>>, each block is a cluster of its own. `cluster_nctarank` is 1, a block finds no
# neighbour's shared memory, and a measurement of clusters compares a kernel with itself.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
cuda="$work/packages/nvidia/cu13"
for package in clang-22 libclang-cpp22 libclang-common-22-dev libllvm22; do
  apt-get -qq -o APT::Sandbox::User=root download "$package=1:22.1.8-1~deb12u1"
done
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu:$work/usr/lib/llvm-22/lib"
clang="$work/usr/lib/llvm-22/bin/clang"
"$clang" --version | head -n 1
: >curand_mtgp32_kernel.h # clang's headers include this one, of a library that is not used here.

cat >clusters.cu <<'CUDA'
extern "C" __global__ void __cluster_dims__(2, 1, 1) with_cluster_dims(float *output) { output[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(128, 1, 2) with_launch_bounds(float *output) { output[threadIdx.x] = 1; }
#ifdef REGISTERS
extern "C" __global__ void __maxnreg__(32) with_maxnreg(float *output) { output[threadIdx.x] = 1; }
#endif
CUDA
compile() { # ARCHITECTURE [OPTION]: with clang
  "$clang" -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch="$1" --cuda-path="$cuda" -I . -Wall -Wno-unknown-cuda-version \
    ${2-} clusters.cu -o clang.ptx
}
show_directives() { # COMPILER ARCHITECTURE: what each kernel of COMPILER.ptx says of clusters
  awk -v label="$1 $2" '/\.entry/ { name = $3; sub(/\(.*/, "", name); seen[name] = "" }
    /^\.(explicitcluster|reqnctapercluster|maxclusterrank)/ { sub(/ *\/\/.*/, ""); seen[name] = seen[name] " " $0 }
    END { for (name in seen) print label " " name ":" seen[name] }' "$1.ptx" | LC_ALL=C sort
}
for architecture in sm_90 sm_100; do
  compile $architecture
  show_directives clang $architecture
  "$cuda/bin/nvcc" -ptx -arch=$architecture clusters.cu -o nvcc.ptx
  show_directives nvcc $architecture
done >seen 2>&1
{
  compile sm_80 || true
  compile sm_90 -DREGISTERS
} 2>&1 | grep -oE '(error|warning): .*' | tr -d "'" >>seen
cat seen

expected='clang sm_90 with_cluster_dims:
clang sm_90 with_launch_bounds: .maxclusterrank 2
nvcc sm_90 with_cluster_dims: .explicitcluster .reqnctapercluster 2, 1, 1
nvcc sm_90 with_launch_bounds: .maxclusterrank 2
clang sm_100 with_cluster_dims:
clang sm_100 with_launch_bounds: .maxclusterrank 2
nvcc sm_100 with_cluster_dims: .explicitcluster .reqnctapercluster 2, 1, 1
nvcc sm_100 with_launch_bounds: .maxclusterrank 2
error: cluster_dims is not supported for this GPU architecture
warning: maxclusterrank requires sm_90 or higher, CUDA arch provided: sm_80, ignoring launch_bounds attribute [-Wignored-attributes]
warning: unknown attribute maxnreg ignored [-Wunknown-attributes]'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
