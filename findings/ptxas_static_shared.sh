#!/usr/bin/env bash
# Guess: static shared memory is limited to 48 KiB a block on each architecture, as the CUDA guide says: a kernel with
# more needs dynamic shared memory. If ptxas takes more for some target, then as much as a block of it may have.
# What happens: the suffix decides. For sm_90a, sm_100a and sm_120a ptxas takes all that a block may have, 227 KiB or
# 99 KiB. For the same chips without a suffix, and with that of a family, it refuses more than 48 KiB.
# Version: ptxas 13.5.37 (nvidia-cuda-nvcc).
# Why it matters: one source assembles or not by a letter of its target, which stands for instructions. cuTile's kernels
# for sm_90a have 72 KiB of static shared memory. A check by the guide's 48 KiB refuses them.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# assemble TARGET BYTES: a kernel with an array of so many bytes in shared memory
assemble() {
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target $1
.address_size 64
.visible .entry kernel() {
  .shared .align 4 .b8 array[$2];
  st.shared.u32 [array+$(($2 - 4))], 1;
  ret;
}
PTX
  ptxas -arch="$1" "$work/kernel.ptx" -o "$work/kernel.cubin" 2>"$work/errors"
}

seen=
for target in sm_80 sm_90 sm_90a sm_100 sm_100f sm_100a sm_120 sm_120f sm_120a; do
  most=0
  for size in 49152 49156 101376 101380 232448 232452 262144 1048576; do
    if assemble "$target" "$size"; then most=$size; else grep -q 'too much shared data' "$work/errors"; fi
  done
  seen+="$target: $most"$'\n'
done
expected='sm_80: 49152
sm_90: 49152
sm_90a: 232448
sm_100: 49152
sm_100f: 49152
sm_100a: 232448
sm_120: 49152
sm_120f: 49152
sm_120a: 101376
'

echo -n "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
