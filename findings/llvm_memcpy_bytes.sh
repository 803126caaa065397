#!/usr/bin/env bash
# Guess, written after the first sign: LLVM compiles a large `llvm.memcpy`, aligned to 16, as it does a small one. It
# becomes accesses of 8 or 16 bytes, in a loop or not.
# What happens: up to 64 bytes it copies 8 at once. A larger size is a loop of one byte at a time, whatever its
# alignment. memset is alike. A load and a store of 128 bytes as an array of floats are of 16 bytes each.
# Version: LLVM 22.1.0 (llvmlite 0.50.0), NVPTX for sm_90, which needs no GPU.
# Why it matters: a thread that copies a large struct so asks for each of its sectors 32 times. Any compiler that uses
# this back end may do it. nvcc copies such a struct 16 bytes at once.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" llvmlite==0.50.0
export PYTHONPATH="$work/packages"

cat >"$work/copies.py" <<'PYTHON'
import re

import llvmlite
from llvmlite import binding

binding.initialize_all_targets()
binding.initialize_all_asmprinters()

def describe_accesses(body):
    """Compile a kernel for pointers aligned to 16; return its accesses to global memory, and the branches back."""
    module = binding.parse_assembly(f"""
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare void @llvm.memcpy.p1.p1.i64(ptr addrspace(1), ptr addrspace(1), i64, i1)
declare void @llvm.memset.p1.i64(ptr addrspace(1), i8, i64, i1)
define ptx_kernel void @copy(ptr addrspace(1) noalias align 16 %output, ptr addrspace(1) noalias align 16 %source) {{
  {body}
  ret void
}}""")
    module.verify()
    target = binding.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu="sm_90", features="+ptx80", opt=3)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    ptx = machine.emit_assembly(module)
    names = re.findall(r"\b(?:ld|st)\.global\S+", ptx)
    counts = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    return f"{counts}{', in a loop' if re.search(r'@%p.*bra', ptx) else ''}"

print("llvmlite", llvmlite.__version__, "LLVM", *binding.llvm_version_info)
pointers = "ptr addrspace(1) align 16 %output, ptr addrspace(1) align 16 %source"
for size in [64, 72, 128]:
    print(f"memcpy of {size}:", describe_accesses(f"call void @llvm.memcpy.p1.p1.i64({pointers}, i64 {size}, i1 false)"))
for size in [64, 72]:
    call = f"call void @llvm.memset.p1.i64(ptr addrspace(1) align 16 %output, i8 0, i64 {size}, i1 false)"
    print(f"memset of {size}:", describe_accesses(call))
print("array of 128:", describe_accesses("""
  %values = load [32 x float], ptr addrspace(1) %source, align 16
  store [32 x float] %values, ptr addrspace(1) %output, align 16"""))
PYTHON
python3 "$work/copies.py" | tee "$work/seen"

expected='llvmlite 0.50.0 LLVM 22 1 0
memcpy of 64: 8 ld.global.b64, 8 st.global.b64
memcpy of 72: 1 ld.global.nc.b8, 1 st.global.b8, in a loop
memcpy of 128: 1 ld.global.nc.b8, 1 st.global.b8, in a loop
memset of 64: 8 st.global.b64
memset of 72: 1 st.global.b8, in a loop
array of 128: 8 ld.global.nc.v4.b32, 8 st.global.v4.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
