#!/usr/bin/env bash
# Guess: pyelftools' has_dwarf_info() is True for a cubin compiled with -lineinfo, since that adds the line table
# .debug_line, and get_dwarf_info() reads it.
# What happens: has_dwarf_info() is False, because it looks for .debug_info, which only -G adds. get_dwarf_info() raises
# ELFRelocationError, because pyelftools does not know the relocations of cubins. With relocate_dwarf_sections=False
# it returns the bytes of .debug_line, but there is no compilation unit to start from.
# Version: pyelftools 0.33, ptxas 13.5.37 (nvidia-cuda-nvcc).
# Why it matters: a tool that maps loads to source lines asks has_dwarf_info() first, and then says of every optimised
# kernel that it has no lines. nvdisasm prints them.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" \
  pyelftools==0.33 nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
export PYTHONPATH="$work/packages"
PATH="$work/packages/nvidia/cu13/bin:$PATH"

cat >"$work/kernel.ptx" <<'PTX'
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 output) {
  .reg .b64 %a;
  .loc 1 7 3
  ld.param.u64 %a, [output];
  .loc 1 8 3
  st.u32 [%a], 1;
  ret;
}
.file 1 "kernel.cu"
PTX
ptxas -arch=sm_90 -lineinfo "$work/kernel.ptx" -o "$work/kernel.cubin"

cat >"$work/read_lines.py" <<'PYTHON'
import sys

import elftools
from elftools.common.exceptions import ELFRelocationError
from elftools.elf.elffile import ELFFile

print("pyelftools", elftools.__version__)
with open(sys.argv[1], "rb") as stream:
    cubin = ELFFile(stream)
    print(".debug_line:", cubin.get_section_by_name(".debug_line") is not None)
    print("has_dwarf_info():", cubin.has_dwarf_info())
    try:
        cubin.get_dwarf_info()
    except ELFRelocationError as error:
        print("get_dwarf_info():", error)
    dwarf = cubin.get_dwarf_info(relocate_dwarf_sections=False)
    print("bytes:", dwarf.debug_line_sec.size > 0, "units:", len(list(dwarf.iter_CUs())))
PYTHON
{ python3 "$work/read_lines.py" "$work/kernel.cubin" &&
  nvdisasm -g -c "$work/kernel.cubin" | grep -oE 'line 8' | uniq; } |
  tee "$work/seen"

expected='pyelftools 0.33
.debug_line: True
has_dwarf_info(): False
get_dwarf_info(): Unsupported relocation type: 2
bytes: True units: 0
line 8'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
