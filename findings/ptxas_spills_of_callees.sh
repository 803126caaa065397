#!/usr/bin/env bash
# Guess: the line "N bytes spill stores" that ptxas -v prints of a kernel includes the functions that it calls.
# What happens: it is of the kernel's own instructions only. A called function that was not inlined has a line of its
# own, with all its spills, below the kernel's. The stack is the other way round: the kernel's line has all of it, and
# the function that spills shows "0 bytes stack frame".
# Version: ptxas 13.5.37 (nvidia-cuda-nvcc), sm_90.
# Why it matters: a check of spills that reads the entries' lines finds none, while each launch moves them through
# local memory. Lines of functions and of entries must be summed along the calls.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# A function that loads 64 values and then needs all of them again, and a kernel that calls it.
python3 - >"$work/kernel.ptx" <<'PYTHON'
loads = "".join(f"  ld.volatile.global.f32 %v{i}, [%a+{4 * i}];\n" for i in range(64))
uses = "".join(f"  fma.rn.f32 %s, %s, %v{i}, %v{63 - i};\n" for i in range(64))
print(f"""
.version 9.0
.target sm_90
.address_size 64
.func (.param .f32 result) reduce(.param .b64 address) {{
  .reg .b64 %a;
  .reg .f32 %s, %v<64>;
  ld.param.b64 %a, [address];
  mov.f32 %s, 0f3F800000;
{loads}{uses}  st.param.f32 [result], %s;
  ret;
}}
.visible .entry kernel(.param .u64 input) {{
  .reg .b64 %a;
  .reg .f32 %s;
  .param .b64 address;
  .param .f32 result;
  ld.param.u64 %a, [input];
  cvta.to.global.u64 %a, %a;
  st.param.b64 [address], %a;
  call.uni (result), reduce, (address);
  ld.param.f32 %s, [result];
  st.global.f32 [%a], %s;
  ret;
}}""")
PYTHON

ptxas -v -arch=sm_90 -maxrregcount=32 "$work/kernel.ptx" -o "$work/kernel.cubin" 2>&1 | tee "$work/log"
frame() { grep -A1 "Function properties for $1" "$work/log" | tail -1; }
frame kernel | grep -q ' 0 bytes spill stores, 0 bytes spill loads' &&
  frame kernel | grep -qE '[1-9][0-9]* bytes stack frame' &&
  frame reduce | grep -qE ' 0 bytes stack frame, [1-9][0-9]* bytes spill stores, [1-9][0-9]* bytes spill loads' ||
  { echo 'the behaviour changed' >&2; exit 1; }
