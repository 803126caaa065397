#!/usr/bin/env bash
# Guess, written after the first sign, counters of an H200: a loop is one loop in machine code. Threads of a warp that
# `continue` at different places of an iteration meet again at its start, or one place at least is the same for all.
# What happens: ptxas makes nested loops of it, one for each `continue`. The first in the body is the innermost: threads
# go on with it until all have got past it, and the others wait at that place. With a test at the loop's start, by which
# threads may leave, the loop stays one loop, and all meet in each iteration.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_80, sm_90 and sm_100.
# Why it matters: `while (true) { if (a) continue; if (b) continue; break; }`, as in a merge path's search, and
# `while (test) { ... }` of the same work have other numbers of requests. On an H200 a search in shared memory made
# 1,225 passes, and a count of iterations as written 1,439.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# print_loops ARCHITECTURE PTX_AT_START: loads and backward branches of the loop, in code order
print_loops() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u32 n) {
  .shared .align 4 .b8 tile[8192];
  .reg .pred %p;
  .reg .b64 %out;
  .reg .b32 %place, %address, %tile, %first, %second, %n;
  ld.param.u64 %out, [out];
  ld.param.u32 %n, [n];
  mov.u32 %place, %tid.x;
  mov.u32 %tile, tile;
  mad.lo.u32 %address, %place, 4, %tile;
  st.shared.u32 [%address], %n;
  bar.sync 0;
START:
  and.b32 %address, %place, 1023;
  mad.lo.u32 %address, %address, 4, %tile;
  ld.shared.u32 %first, [%address];
  $2
  setp.gt.u32 %p, %first, %n;
  @%p bra SECOND;
  add.u32 %place, %place, %first;
  bra.uni START;
SECOND:
  ld.shared.u32 %second, [%address+4096];
  setp.gt.u32 %p, %second, %n;
  @%p bra END;
  sub.u32 %place, %place, %second;
  bra.uni START;
END:
  st.global.u32 [%out], %place;
  ret;
}
PTX
  ptxas "-arch=$1" "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | awk '/BAR.SYNC/ { inside = 1 } / EXIT / { inside = 0 }
    inside && /^\.L_x_[0-9]+:/ { sub(":", ""); seen[$1] = 1 }
    inside && / LDS / { printf " load" }
    inside && / BRA / { label = $0; sub(/.*`\(/, "", label); sub(/\).*/, "", label); if (label in seen) printf " back" }'
}

test='setp.gt.u32 %p, %first, 4000; @%p bra END;'
seen=$(for architecture in sm_80 sm_90 sm_100; do
  echo "$architecture, no test at the start:$(print_loops "$architecture" '')"
  echo "$architecture, a test at the start:$(print_loops "$architecture" "$test")"
done)
echo "$seen"
[ "$(grep -c 'no test at the start: load back load back$' <<<"$seen")" = 3 ] &&
  [ "$(grep 'a test at the start' <<<"$seen" | grep -o back | wc -l)" = 3 ] ||
  { echo 'the behaviour changed' >&2; exit 1; }
