#!/usr/bin/env bash
# Guess, written after the first sign: cuTile copies the scales of 4-bit factors, 16 bytes a row, with accesses that
# are aligned to their size, as cp.async needs them.
# What happens: with the compiler that `pip install cuda-tile[tileiras]` brings, thread 64 copies 8 bytes from byte 4
# of the first row. With the next release of the compiler a thread copies 4 bytes at a time.
# Version: cuTile 1.7.0, which needs a CUDA toolkit before 13.5, with tileiras 13.4.92; and with 13.5.37. A target of
# sm_100, which needs no GPU.
# Why it matters: the kernel ends with a misaligned address on a GPU. Neither cuTile nor its compiler says anything.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/scaled_product.py" <<'PYTHON'
import io
import re
from importlib.metadata import version

import cuda.tile as ct
from cuda.tile import compilation
from elftools.elf.elffile import ELFFile

@ct.kernel
def multiply(a, a_scales, b, b_scales, result, steps: ct.Constant[int]):
    total = ct.full((128, 128), 0.0, ct.float32)
    for step in range(steps):
        a_bytes = ct.reshape(ct.load(a, index=(0, step), shape=(128, 64)), (8192,))
        b_bytes = ct.reshape(ct.load(b, index=(0, step), shape=(128, 64)), (8192,))
        left = ct.reshape(ct.unpack_from_bytes(a_bytes, ct.float4_e2m1fn), (128, 128))
        right = ct.reshape(ct.unpack_from_bytes(b_bytes, ct.float4_e2m1fn), (128, 128))
        left_scales = ct.load(a_scales, index=(0, step), shape=(128, 8))
        right_scales = ct.load(b_scales, index=(0, step), shape=(128, 8))
        total = ct.mma_scaled(left, left_scales, ct.transpose(right), ct.transpose(right_scales), total)
    ct.store(result, index=(0, 0), tile=total)

def constrain_matrix(dtype):
    """Describe a row-major matrix: its address, its lengths and the stride of its rows are multiples of 16."""
    return compilation.ArrayConstraint(
        dtype, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
        stride_constant=[None, 1], stride_divisible_by=[16, 1], shape_divisible_by=[16, 16], base_addr_divisible_by=16,
    )

def find_offset(ptx, register, thread):
    """Compute the offset that a register holds, for rows of 16 bytes in an array at address 0."""
    if not register.startswith("%"):
        return int(register)
    if register == "%tid.x":
        return thread
    name, operands = re.search(rf"^(\S+)\s+{register}, (.*);", ptx, re.M).groups()
    if name.startswith("ld.param"):
        return 0 if name.endswith("64") else 16
    first, *second = (find_offset(ptx, operand, thread) for operand in operands.split(", "))
    operation = name.partition(".")[0]
    if operation in ("mov", "cvt"):
        return first
    return {"shl": int.__lshift__, "shr": int.__rshift__, "and": int.__and__, "or": int.__or__, "add": int.__add__,
            "mul": int.__mul__}[operation](first, *second)

types = (ct.uint8, ct.float8_e4m3fn, ct.uint8, ct.float8_e4m3fn, ct.float32)
constraints = [*map(constrain_matrix, types), compilation.ConstantConstraint(2)]
signature = compilation.KernelSignature(constraints, compilation.CallingConvention.cutile_python_v1())
cubin = io.BytesIO()
compilation.export_kernel(multiply, [signature], cubin, gpu_code="sm_100", output_format="cubin")
section = ELFFile(cubin).get_section_by_name(".nv_debug_ptx_txt").data()
ptx = section.replace(b"\0", b"\n").decode("utf-8", "replace")
source, size = re.search(r"cp\.async\.ca\.shared\.global \[\S+, \[(%rd\d+)\], (\d+)", ptx).groups()
offsets = [find_offset(ptx, source, thread) for thread in (0, 1, 64)]
print(f"tileiras {version('nvidia-cuda-tileiras')}: threads 0, 1 and 64 copy {size} bytes from byte", *offsets)
PYTHON

python3 -m venv "$work/venv"
for release in 13.4.92 13.5.37; do
    "$work/venv/bin/python" -m pip install -qq --disable-pip-version-check "cuda-tile==1.7.0" pyelftools==0.33 \
        nvidia-cuda-tileiras==$release nvidia-cuda-nvcc==$release nvidia-nvvm==$release
    "$work/venv/bin/python" -W ignore "$work/scaled_product.py" | tee -a "$work/seen"
done

expected='tileiras 13.4.92: threads 0, 1 and 64 copy 8 bytes from byte 0 1024 4
tileiras 13.5.37: threads 0, 1 and 64 copy 4 bytes from byte 0 512 256'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
