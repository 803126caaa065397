#!/usr/bin/env bash
# Guess, written after the first sign: an asynchronous copy (`cp.async`) is one LDGSTS in machine code. If loads of shared
# memory come with it, they come once in a kernel, in front of the first copy, and from sm_90 on.
# What happens: from sm_90 on, three loads of shared address 0 into no register stand before it, `LDS RZ, [RZ]`. In a
# loop they are executed again in each iteration, on sm_80 and sm_86, too. Copies in a row share the three. A bulk
# copy (`cp.async.bulk`) has none.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Why it matters: no line of the source makes these loads. For one copy Nsight Compute on an H200 counts 3 executed shared
# loads and 3 wavefronts of shared memory, but 0 wavefronts of loads: a ratio of the counters is of different things.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_accesses ARCHITECTURE BODY: the copies and the loads of shared memory, in order
list_accesses() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 input, .param .u32 count) {
  .reg .b64 %rd1;
  .reg .b32 %tile, %n;
  .reg .pred %p;
  .shared .align 128 .b8 tile[4096];
  .shared .align 8 .b64 barrier;
  ld.param.u64 %rd1, [input];
  ld.param.u32 %n, [count];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %tile, tile;
  $2
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '(LDS|LDGSTS|UBLKCP)' | uniq -c | awk '{printf " %s %s", $1, $2}'
}

copy='cp.async.cg.shared.global [%tile], [%rd1], 16;'
copies="$copy cp.async.cg.shared.global [%tile+16], [%rd1+16], 16;"
loop="
AGAIN:
  .pragma \"nounroll\";
  $copy
  cp.async.wait_all;
  bar.sync 0;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra AGAIN;"
bulk='cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%rd1], 16, [barrier];'
seen=$(for architecture in sm_80 sm_86 sm_90 sm_100 sm_120; do
  echo "$architecture one copy:$(list_accesses "$architecture" "$copy cp.async.wait_all;")"
  echo "$architecture two copies:$(list_accesses "$architecture" "$copies cp.async.wait_all;")"
  echo "$architecture loop of one:$(list_accesses "$architecture" "$loop")"
done; echo "sm_90 bulk copy:$(list_accesses sm_90 "$bulk")")
expected='sm_80 one copy: 1 LDGSTS
sm_80 two copies: 2 LDGSTS
sm_80 loop of one: 3 LDS 1 LDGSTS
sm_86 one copy: 1 LDGSTS
sm_86 two copies: 2 LDGSTS
sm_86 loop of one: 3 LDS 1 LDGSTS
sm_90 one copy: 3 LDS 1 LDGSTS
sm_90 two copies: 3 LDS 2 LDGSTS
sm_90 loop of one: 3 LDS 1 LDGSTS
sm_100 one copy: 3 LDS 1 LDGSTS
sm_100 two copies: 3 LDS 2 LDGSTS
sm_100 loop of one: 3 LDS 1 LDGSTS
sm_120 one copy: 3 LDS 1 LDGSTS
sm_120 two copies: 3 LDS 2 LDGSTS
sm_120 loop of one: 3 LDS 1 LDGSTS
sm_90 bulk copy: 1 UBLKCP'

echo "shared loads and copies in machine code, in order:"
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
