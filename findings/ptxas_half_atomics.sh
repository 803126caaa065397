#!/usr/bin/env bash
# Guess: an addition of one float16 to global memory, whose result is unused, is one reduction, as of float32: REDG. So
# is one of bfloat16 where PTX has the instruction, from sm_90 on.
# What happens: a loop of a load and a compare-and-swap of the word around it, ATOMG.E.CAS, on each chip. Two that are
# added together, `f16x2` or `v2`, are one REDG.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Why it matters: atomicAdd() of a __half becomes this loop, of generic accesses: a load and an atomic, once at least.
# Two neighbours share a word, so a lane's swap makes its neighbour's fail: the counts depend on other threads.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_accesses ARCHITECTURE OPERATION VALUE: the accesses that a reduction in global memory becomes
list_accesses() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 output, .param .u32 bits) {
  .reg .b64 %rd1;
  .reg .b32 %r1;
  .reg .f32 %f1;
  .reg .b16 %h<3>;
  ld.param.u64 %rd1, [output];
  ld.param.u32 %r1, [bits];
  cvta.to.global.u64 %rd1, %rd1;
  mov.b32 {%h1, %h2}, %r1;
  mov.b32 %f1, %r1;
  red.global.add.$2 [%rd1], $3;
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(LDG|ATOMG|REDG?)\.E[.A-Za-z0-9]*' | paste -sd' '
}

seen=$(for architecture in sm_80 sm_90 sm_100; do
  echo "$architecture float32: $(list_accesses "$architecture" f32 %f1)"
  echo "$architecture float16: $(list_accesses "$architecture" noftz.f16 %h1)"
  echo "$architecture two float16: $(list_accesses "$architecture" noftz.f16x2 %r1)"
done
for architecture in sm_90 sm_100; do
  echo "$architecture bfloat16: $(list_accesses "$architecture" noftz.bf16 %h1)"
  echo "$architecture two bfloat16: $(list_accesses "$architecture" noftz.v2.bf16 '{%h1, %h2}')"
done)
expected='sm_80 float32: RED.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_80 float16: LDG.E ATOMG.E.CAS.STRONG.GPU
sm_80 two float16: RED.E.ADD.F16x2.RN.STRONG.GPU
sm_90 float32: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_90 float16: LDG.E ATOMG.E.CAS.STRONG.GPU
sm_90 two float16: REDG.E.ADD.F16x2.RN.STRONG.GPU
sm_100 float32: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_100 float16: LDG.E ATOMG.E.CAS.STRONG.GPU
sm_100 two float16: REDG.E.ADD.F16x2.RN.STRONG.GPU
sm_90 bfloat16: LDG.E ATOMG.E.CAS.STRONG.GPU
sm_90 two bfloat16: REDG.E.ADD.BF16x2.RN.STRONG.GPU
sm_100 bfloat16: LDG.E ATOMG.E.CAS.STRONG.GPU
sm_100 two bfloat16: REDG.E.ADD.BF16x2.RN.STRONG.GPU'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
