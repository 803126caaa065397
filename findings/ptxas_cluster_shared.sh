#!/usr/bin/env bash
# Guess: `ld.shared::cluster`, which reads shared memory of a cluster's blocks, is a load of shared memory: LDS. Stores
# are STS and atomics ATOMS, since PTX names the space.
# What happens: generic accesses, LD, ST and ATOM, on each chip from sm_90 on. That is so for the block's own shared
# memory, too: only a load of a variable's constant address becomes LDS. `ld.shared` and `ld.shared::cta` are LDS.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm).
# Why it matters: machine code does not tell distributed shared memory from global memory, and counts of LDS and STS
# miss it. One word in PTX, `::cluster`, makes an own tile's accesses generic.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_accesses ARCHITECTURE BODY: the accesses of a kernel to shared memory in machine code
list_accesses() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 output) {
  .reg .b64 %rd1;
  .reg .b32 %own, %other, %r1;
  .shared .align 16 .b8 tile[4096];
  ld.param.u64 %rd1, [output];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  shl.b32 %r1, %r1, 2;
  mov.u32 %own, tile;
  add.u32 %own, %own, %r1;
  mapa.shared::cluster.u32 %other, %own, 1;
  $2
  st.global.u32 [%rd1], %r1;
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '\b(LDS|STS|ATOMS|LD|ST|ATOM)\b[.A-Z0-9]*' | paste -sd' '
}

seen=$(for architecture in sm_90 sm_100 sm_120; do
  echo "$architecture other block: $(list_accesses "$architecture" 'ld.shared::cluster.u32 %r1, [%other];
    st.shared::cluster.u32 [%other], %r1; atom.shared::cluster.exch.b32 %r1, [%other], %r1;')"
  echo "$architecture own, ::cluster: $(list_accesses "$architecture" 'ld.shared::cluster.u32 %r1, [%own];
    st.shared::cluster.u32 [%own], %r1; atom.shared::cluster.exch.b32 %r1, [%own], %r1;')"
  echo "$architecture own, ::cta: $(list_accesses "$architecture" 'ld.shared::cta.u32 %r1, [%own];
    st.shared::cta.u32 [%own], %r1; atom.shared::cta.exch.b32 %r1, [%own], %r1;')"
  echo "$architecture own, constant address: $(list_accesses "$architecture" 'ld.shared::cluster.u32 %r1, [tile];')"
done)
expected='sm_90 other block: LD.E ST.E ATOM.E.EXCH.STRONG.GPU
sm_90 own, ::cluster: LD.E ST.E ATOM.E.EXCH.STRONG.GPU
sm_90 own, ::cta: LDS STS ATOMS.EXCH
sm_90 own, constant address: LDS
sm_100 other block: LD.E ST.E ATOM.E.EXCH.STRONG.GPU
sm_100 own, ::cluster: LD.E ST.E ATOM.E.EXCH.STRONG.GPU
sm_100 own, ::cta: LDS STS ATOMS.EXCH
sm_100 own, constant address: LDS
sm_120 other block: LD.E ST.E ATOM.E.EXCH.STRONG.GPU
sm_120 own, ::cluster: LD.E ST.E ATOM.E.EXCH.STRONG.GPU
sm_120 own, ::cta: LDS STS ATOMS.EXCH
sm_120 own, constant address: LDS'

echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
