#!/usr/bin/env bash
# Guess: lanes that leave a loop at different times wait for each other behind it, so a store there is one request a warp.
# What happens: if an atomic or a volatile load decides when the loop ends, ptxas puts a YIELD into it. Lanes that left
# wait only until the others yield. Then they run on alone, up to the kernel's end or a __syncwarp(). The branch may
# be indirect: by an address, or by a counter that the result guards. In a loop that counts, another exit behind the
# volatile load's removes the YIELD.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_80, sm_90 and sm_100.
# Why it matters: code behind an insertion into a hash table, a lock or an atomic maximum is not coalesced. On an H200
# (nvcc 13.0.88) 32 warps with one to eight iterations a lane made 250 requests of a store behind the loop for 32, and
# 655 sectors for 125; with __syncwarp() 32 and 125.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# code_of ARCHITECTURE LOOP [BEHIND]: the yields, barriers and stores in the machine code of a loop with its end in %p1
code_of() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 input, .param .u64 output, .param .u32 n) {
  .reg .pred %p<4>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [input];
  ld.param.u64 %rd2, [output];
  ld.param.u32 %r1, [n];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r0, %tid.x;
  mov.u32 %r2, %r0;
  mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
LOOP:
  .pragma "nounroll";
  $2
  add.u64 %rd1, %rd1, 4096;
  @%p1 bra LOOP;
END:
  ${3:-}
  st.global.u32 [%rd2], %r0;
  ret;
}
PTX
  ptxas -arch="$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE 'YIELD|BSYNC|WARPSYNC|STG' | uniq | paste -sd ' '
}

swap='atom.global.exch.b32 %r3, [%rd1], 0; setp.ne.u32 %p1, %r3, 0;'
volatile='ld.volatile.global.u32 %r3, [%rd1];'
count='add.u32 %r2, %r2, 32; setp.lt.u32 %p1, %r2, %r1;'
plain='ld.global.u32 %r4, [%rd1+64]; setp.eq.u32 %p3, %r4, 7; @%p3 bra END;'
seen=$(
  for architecture in sm_80 sm_90 sm_100; do echo "$architecture: $(code_of $architecture "$swap")"; done
  echo "volatile: $(code_of sm_90 "$volatile setp.ne.u32 %p1, %r3, 0;")"
  echo "plain: $(code_of sm_90 "ld.global.u32 %r3, [%rd1]; setp.ne.u32 %p1, %r3, 0;")"
  echo "atomic that decides nothing: $(code_of sm_90 "atom.global.exch.b32 %r3, [%rd1], 0; add.u32 %r0, %r0, %r3; $count")"
  echo "counted: $(code_of sm_90 "$volatile setp.eq.u32 %p2, %r3, 0; @%p2 bra END; $count")"
  echo "counted, another exit: $(code_of sm_90 "$volatile setp.eq.u32 %p2, %r3, 0; @%p2 bra END; $plain $count")"
  echo "synchronised: $(code_of sm_90 "$swap" 'bar.warp.sync -1;')"
)
echo "$seen"
expected='sm_80: YIELD BSYNC STG
sm_90: YIELD BSYNC STG
sm_100: YIELD BSYNC STG
volatile: YIELD BSYNC STG
plain: BSYNC STG
atomic that decides nothing: BSYNC STG
counted: YIELD BSYNC STG
counted, another exit: BSYNC STG
synchronised: YIELD WARPSYNC STG'
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
