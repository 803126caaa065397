#!/usr/bin/env bash
# Guess: an array that is indexed by a number known only at run time is in local memory, since registers have no index.
# PTX says so, with st.local and ld.local.
# What happens: up to 64 elements, ptxas keeps such an array in registers and chooses the element by comparisons: no
# local load, no local store, a stack of 0 bytes. With 128 elements all of it is in local memory. So are 8 with -O0.
# Version: ptxas and nvdisasm 13.5.37 (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), sm_90.
# Why it matters: local traffic counted in PTX may not exist on the GPU. It appears at once as an array grows past a
# limit between 64 and 128 elements. The stack frame that ptxas -v prints tells; PTX does not.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# report_local ELEMENTS [OPTION]: accesses of a kernel that fills an array and reads the element of its argument
report_local() {
  {
    cat <<PTX
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 input, .param .u32 index) {
  .local .align 4 .b8 array[$((4 * $1))];
  .reg .b64 %input, %array, %element;
  .reg .b32 %index, %value;
  ld.param.u64 %input, [input];
  cvta.to.global.u64 %input, %input;
  ld.param.u32 %index, [index];
  mov.u64 %array, array;
PTX
    for i in $(seq 0 $(($1 - 1))); do
      echo "ld.global.u32 %value, [%input+$((4 * i))]; st.local.u32 [%array+$((4 * i))], %value;"
    done
    echo "and.b32 %index, %index, $(($1 - 1)); mad.wide.u32 %element, %index, 4, %array;
      ld.local.u32 %value, [%element]; st.global.u32 [%input], %value; ret; }"
  } >"$work/kernel.ptx"
  frame=$(ptxas -v -arch=sm_90 ${2:-} "$work/kernel.ptx" -o "$work/kernel.cubin" 2>&1 |
    grep -oE '[0-9]+ bytes stack frame')
  accesses=$(nvdisasm -c "$work/kernel.cubin" | grep -cE '\b(LDL|STL)' || true)
  echo "$1 elements${2:+, $2}: PTX $(grep -coE '(ld|st)\.local' "$work/kernel.ptx"), machine code $accesses, $frame"
}

seen=$(report_local 8; report_local 64; report_local 128; report_local 8 -O0)
expected='8 elements: PTX 9, machine code 0, 0 bytes stack frame
64 elements: PTX 65, machine code 0, 0 bytes stack frame
128 elements: PTX 129, machine code 65, 512 bytes stack frame
8 elements, -O0: PTX 9, machine code 9, 32 bytes stack frame'

echo "local loads and stores:"
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
