#!/usr/bin/env bash
# Guess, written after the first sign, `sharedSizeBytes` on an H200: a kernel's static shared memory is that of the
# variables that it uses. An `extern __shared__` array is dynamic and adds nothing, least of all to kernels without it.
# What happens: ptxas rounds the static shared memory of each kernel of a file up to the largest alignment of the file's
# extern arrays, also of kernels that do not use them. A kernel with 256 bytes gets 1024 beside an array with .align
# 1024, as copies by TMA need, and 16384 beside .align 16384. The same alignment of another kernel's static array does
# not matter, and a kernel without static shared memory stays without.
# Version: ptxas 13.5.37 (nvidia-cuda-nvcc), sm_80 and sm_90.
# Why it matters: fewer blocks are resident. A kernel that reports 256 bytes in a file of its own reports, and takes, 64
# times as much after a line that it does not use was added to its file.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# print_bytes ARCHITECTURE MODULE_LINE KERNEL_LINE: shared memory of `small` beside a kernel that uses `array`
print_bytes() {
  cat >"$work/kernels.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
$2
.visible .entry aligned() {
  $3
  .reg .b32 %lane;
  mov.u32 %lane, %tid.x;
  st.shared.u32 [array], %lane;
  ret;
}
.visible .entry small() {
  .shared .align 4 .b8 own[256];
  .reg .b32 %lane;
  mov.u32 %lane, %tid.x;
  st.shared.u32 [own], %lane;
  ret;
}
PTX
  ptxas -v -arch="$1" "$work/kernels.ptx" -o "$work/kernels.cubin" 2>&1 |
    grep -A4 "Compiling entry function 'small'" | grep -oE '[0-9]+ bytes smem' | head -1
}

seen=$(for arch in sm_80 sm_90; do
  for alignment in 16 1024 16384; do
    echo "$arch .align $alignment: extern $(print_bytes $arch ".extern .shared .align $alignment .b8 array[];" '')," \
      "static $(print_bytes $arch '' ".shared .align $alignment .b8 array[256];")"
  done
done)
expected=$(for arch in sm_80 sm_90; do
  for alignment in 16 1024 16384; do
    echo "$arch .align $alignment: extern $((alignment > 256 ? alignment : 256)) bytes smem, static 256 bytes smem"
  done
done)

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
