#!/usr/bin/env bash
# Guess, written after a program's wrong output on an H200: a variable in shared memory that is declared with .align 16384
# is at a multiple of 16384, as the PTX ISA says, or ptxas rejects the alignment.
# What happens: from sm_90 on, the 1024 bytes that CUDA reserves for each block are at the beginning of shared memory, and
# ptxas places variables behind them. Its address is 1024, whatever the alignment; on sm_80 and sm_89 it is 0. The section
# keeps the alignment, and only the bytes of the block grow to a multiple of it. There is no warning.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Why it matters: a double buffer that changes its half by `address ^ 0x2000` leaves its half on Hopper and Blackwell. A
# public SGEMM of an aligned array of 24 KiB is right on sm_80, and its check fails on an H200. NVIDIA's swizzles need
# 1024 bytes, which stay.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# print_address ARCHITECTURE ALIGNMENT: the constant that is the variable's address within the block's shared memory
print_address() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 out) {
  .shared .align $2 .b8 buffer[256];
  .reg .b64 %out;
  .reg .b32 %lane, %address;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  mov.u32 %lane, %tid.x;
  mov.u32 %address, buffer;
  st.shared.u32 [%address], %lane;
  st.global.u32 [%out], %address;
  ret;
}
PTX
  ptxas -arch="$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  address=$(nvdisasm -c "$work/kernel.cubin" | grep -oE '(UMOV|MOV) U?R[0-9]+, 0x[0-9a-f]+' | grep -oE '0x[0-9a-f]+' | head -1 || true)
  echo "$1 .align $2: address $((${address:-0}))"
}

seen=$(for arch in sm_80 sm_89 sm_90 sm_100 sm_120; do
  for alignment in 1024 2048 16384; do print_address $arch $alignment; done
done)
expected=$(for pair in sm_80:0 sm_89:0 sm_90:1024 sm_100:1024 sm_120:1024; do
  for alignment in 1024 2048 16384; do echo "${pair%:*} .align $alignment: address ${pair#*:}"; done
done)

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
