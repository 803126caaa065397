#!/usr/bin/env bash
# Guess: `ld.global.cv`, which is what the CUDA C++ function __ldcv() becomes, reaches memory each time. The PTX ISA
# describes .cv as "don't cache and fetch again", and a loop of such loads looks like a benchmark of memory.
# What happens: ptxas takes .cv as a hint, which the ISA allows of every cache operator. Two loads of one address become
# one, and loads whose results are unused are removed. `ld.volatile` keeps each load.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_90.
# Why it matters: a benchmark that repeats __ldcv() to measure DRAM can time a kernel without any load, and its
# PTX does not show that.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# count_loads OPERATION USE: the global loads in machine code of two loads of one address
count_loads() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 input, .param .u64 output) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [input];
  ld.param.u64 %rd2, [output];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  $1.u32 %r1, [%rd1];
  $1.u32 %r2, [%rd1];
  $2
  ret;
}
PTX
  ptxas -arch=sm_90 "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -c 'LDG' || true
}

sum='add.u32 %r3, %r1, %r2; st.global.u32 [%rd2], %r3;'
seen="ld.global.cv used: $(count_loads ld.global.cv "$sum")
ld.global.cv unused: $(count_loads ld.global.cv '')
ld.volatile.global used: $(count_loads ld.volatile.global "$sum")
ld.volatile.global unused: $(count_loads ld.volatile.global '')"
expected='ld.global.cv used: 1
ld.global.cv unused: 0
ld.volatile.global used: 2
ld.volatile.global unused: 2'

echo "global loads in machine code, of 2 in PTX:"
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
