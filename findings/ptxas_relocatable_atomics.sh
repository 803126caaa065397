#!/usr/bin/env bash
# Guess: relocatable device code, nvcc -rdc=true, changes how functions are called, not how memory is accessed.
# What happens: an atomicAdd whose result nobody reads is `atom` in PTX. ptxas makes a REDG of it, which returns
# nothing. With --compile-only, the option that -rdc=true adds, it makes an ATOMG whose result is RZ, the register that
# drops what is written to it. Linking does not change that. `red` in PTX is a REDG either way.
# Version: ptxas, nvlink and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_90.
# Why it matters: the same PTX uses another instruction, and Nsight Compute has other metrics for it. A kernel that
# moves into a library of relocatable code is not the kernel that was measured before.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_atomics INSTRUCTION: compiled whole, and compiled relocatable and then linked
list_atomics() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 counters) {
  .reg .b64 %counter;
  .reg .b32 %lane, %old;
  .reg .f32 %old_float;
  ld.param.u64 %counter, [counters];
  cvta.to.global.u64 %counter, %counter;
  mov.u32 %lane, %tid.x;
  mad.wide.u32 %counter, %lane, 4, %counter;
  $1;
  ret;
}
PTX
  ptxas -arch=sm_90 "$work/kernel.ptx" -o "$work/whole.cubin"
  ptxas -arch=sm_90 --compile-only "$work/kernel.ptx" -o "$work/relocatable.o"
  nvlink -arch=sm_90 "$work/relocatable.o" -o "$work/linked.cubin"
  for cubin in whole linked; do
    nvdisasm -c "$work/$cubin.cubin" | grep -oE '(REDG|ATOMG)[.A-Z0-9]*( PT, RZ)?' | sed "s/^/  $cubin: /"
  done
}

seen=$(for instruction in 'atom.global.add.u32 %old, [%counter], 1' \
  'atom.global.add.f32 %old_float, [%counter], 0f3F800000' \
  'red.global.add.u32 [%counter], 1'; do
  echo "${instruction%% *}"
  list_atomics "$instruction"
done)
expected='atom.global.add.u32
  whole: REDG.E.ADD.STRONG.GPU
  linked: ATOMG.E.ADD.STRONG.GPU PT, RZ
atom.global.add.f32
  whole: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
  linked: ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU PT, RZ
red.global.add.u32
  whole: REDG.E.ADD.STRONG.GPU
  linked: REDG.E.ADD.STRONG.GPU'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
