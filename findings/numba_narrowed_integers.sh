#!/usr/bin/env bash
# Guess: `cuda.brev(i)` reverses the 64 bits of an int64, which `i = cuda.grid(1)` is, and `cuda.syncthreads_count(x)`
# counts the threads whose x is not 0. popc(), clz(), ffs(), any_sync() and ballot_sync() take all of an int64.
# What happens: brev() and syncthreads_count(), _or() and _and() take an int64's lower 32 bits. brev() returns 32 bits:
# shifted right by 54, as for an array of 1024 elements, they are 0 for each thread. 2^32 counts as 0. uint64 is
# reversed whole, and counted as int64 is.
# Version: numba-cuda 0.30.4, sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: the permutation of an FFT reads a[0] in all lanes, one sector a load, with no error: a wrong result
# that looks perfectly coalesced. Counts of 64-bit masks are too small, and a loop until all are 0 ends early.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37

cat >"$work/integers.py" <<'PYTHON'
import re
from importlib.metadata import version

from numba import cuda

def brev(output, source):
    output[0] = cuda.brev(source[0])

def permute(output, source):
    i = cuda.grid(1)
    output[i] = source[cuda.brev(i) >> 54]

def permute_32(output, source):
    i = cuda.threadIdx.x
    output[i] = source[cuda.brev(i) >> 22]

def popc(output, source):
    output[0] = cuda.popc(source[0])

def any_sync(output, source):
    output[0] = cuda.any_sync(-1, source[0])

def syncthreads_count(output, source):
    output[0] = cuda.syncthreads_count(source[0])

def syncthreads_or(output, source):
    output[0] = cuda.syncthreads_or(source[0])

def syncthreads_and(output, source):
    output[0] = cuda.syncthreads_and(source[0])

print("numba-cuda", version("numba-cuda"))
for kernel in brev, permute, permute_32, popc, any_sync, syncthreads_count, syncthreads_or, syncthreads_and:
    for kind in ("int64", "uint64") if "permute" not in kernel.__name__ else ("float32",):
        ptx, _ = cuda.compile_ptx(kernel, f"void({kind}[::1], {kind}[::1])", cc=(9, 0))
        operations = re.findall(r"^\t(?:ld\.global|brev|popc|setp\.ne|bar|vote)\.\S+", ptx, re.MULTILINE)
        print(f"{kernel.__name__} {kind}:", *(operation.strip() for operation in operations))
PYTHON
"$work/venv/bin/python" -W ignore "$work/integers.py" | tee "$work/seen"

expected='numba-cuda 0.30.4
brev int64: ld.global.u32 brev.b32
brev uint64: ld.global.u64 brev.b64
permute float32: ld.global.f32
permute_32 float32: brev.b32 ld.global.f32
popc int64: ld.global.u64 popc.b64
popc uint64: ld.global.u64 popc.b64
any_sync int64: ld.global.u64 setp.ne.s64 vote.sync.any.pred
any_sync uint64: ld.global.u64 setp.ne.s64 vote.sync.any.pred
syncthreads_count int64: ld.global.u32 setp.ne.u32 bar.red.popc.u32
syncthreads_count uint64: ld.global.u32 setp.ne.u32 bar.red.popc.u32
syncthreads_or int64: ld.global.u32 setp.ne.u32 bar.red.or.pred
syncthreads_or uint64: ld.global.u32 setp.ne.u32 bar.red.or.pred
syncthreads_and int64: ld.global.u32 setp.ne.u32 bar.red.and.pred
syncthreads_and uint64: ld.global.u32 setp.ne.u32 bar.red.and.pred'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
