#!/usr/bin/env bash
# Guess: one `ld.global.v4.f32` in PTX is one 128-bit load in machine code. If components are unused, it may shrink.
# What happens: if only the first and last components are used, ptxas makes two 32-bit loads of it: two requests to
# memory in place of one. Three used components of four remain one 128-bit load, and neighbours become a 64-bit load.
# ptxas -O0 keeps the 128 bits.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_90 and sm_100.
# Why it matters: a count of load instructions in PTX is half of what the GPU executes. If a struct's field falls out of
# use, the load instructions can double, though nobody touched the load.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_loads ARCHITECTURE USED [OPTION]: the load instructions that a v4 load becomes, of which USED are summed
list_loads() {
  sum=$(for component in $2; do echo "add.f32 %f0, %f0, %$component;"; done)
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 input, .param .u64 output) {
  .reg .b64 %rd<3>;
  .reg .f32 %f0, %x, %y, %z, %w;
  ld.param.u64 %rd1, [input];
  ld.param.u64 %rd2, [output];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.f32 %f0, 0f3F800000;
  ld.global.v4.f32 {%x, %y, %z, %w}, [%rd1];
  $sum
  st.global.f32 [%rd2], %f0;
  ret;
}
PTX
  ptxas "-arch=$1" ${3:-} "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE 'LDG[.A-Z0-9]*' | paste -sd' '
}

seen=$(for architecture in sm_90 sm_100; do
  for used in 'x w' 'y z' 'x y' 'x y z' x; do echo "$architecture $used: $(list_loads "$architecture" "$used")"; done
done; echo "sm_90 x w, -O0: $(list_loads sm_90 'x w' -O0)")
expected='sm_90 x w: LDG.E LDG.E
sm_90 y z: LDG.E LDG.E
sm_90 x y: LDG.E.64
sm_90 x y z: LDG.E.128
sm_90 x: LDG.E
sm_100 x w: LDG.E LDG.E
sm_100 y z: LDG.E LDG.E
sm_100 x y: LDG.E.64
sm_100 x y z: LDG.E.128
sm_100 x: LDG.E
sm_90 x w, -O0: LDG.E.128'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
