#!/usr/bin/env bash
# Guess: Conch's `reshape_and_cache()` stores keys and values at the strides of the cache that it is given, of shape
# [pages, entries of a page, heads, elements of a head]. It passes them to the kernel, and `strict=True` compares them.
# What happens: the kernel never uses the cache's stride between heads, but that of the new keys. In a cache whose
# memory is [pages, heads, entries, elements], vLLM's layout HND, head 1 of a token is stored as the next entry of
# head 0, and overwrites it or is overwritten. With one head, or memory in the order of the shape, all is right.
# Version: conch-triton-kernels 1.3, run on the CPU by the interpreter of Triton 3.9.0; torch 2.13.0. Seen on
# 1 December 2026.
# Why it matters: attention reads other tokens' keys and zeros, without an error; the stores stay in the same page.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps conch-triton-kernels==1.3
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1

cat >"$work/caches.py" <<'PYTHON'
import inspect
from importlib.metadata import version

import torch
import triton
from conch.kernels.vllm import reshape_and_cache as kernels
from conch.ops.vllm.reshape_and_cache import reshape_and_cache

print("conch-triton-kernels", version("conch-triton-kernels"), "triton", triton.__version__)
kernel = inspect.getsource(kernels._reshape_and_cache_kernel.fn)
print("the code of the kernel names kv_cache_block_stride", kernel.split('"""')[2].count("kv_cache_block_stride"),
      "and kv_cache_head_stride", kernel.split('"""')[2].count("kv_cache_head_stride"), "times")

def describe_cache(heads, permuted):
    """Store three tokens in a cache of two pages of four entries; return which ones are there, and the first page."""
    keys = 1 + torch.arange(3.0).view(3, 1, 1) + torch.arange(heads).view(1, heads, 1) / 10 + torch.zeros(3, heads, 4)
    shape = (2, heads, 4, 4) if permuted else (2, 4, heads, 4)
    caches = [torch.zeros(shape).transpose(1, 2) if permuted else torch.zeros(shape) for _ in range(2)]
    reshape_and_cache(keys, keys, *caches, torch.arange(3), strict=True)
    stored = [torch.equal(caches[0][0, slot], keys[slot]) for slot in range(3)]
    entries = [[round(element, 1) for element in entry] for entry in caches[0][0, :, :, 0].tolist()]
    return f"stored {stored}, first elements {entries}"

for heads in 1, 2:
    for permuted in False, True:
        print(f"heads {heads}, permuted {permuted}:", describe_cache(heads, permuted))
PYTHON
"$work/venv/bin/python" -W ignore "$work/caches.py" 2>"$work/messages" | tee "$work/seen"

expected='conch-triton-kernels 1.3 triton 3.9.0
the code of the kernel names kv_cache_block_stride 1 and kv_cache_head_stride 0 times
heads 1, permuted False: stored [True, True, True], first elements [[1.0], [2.0], [3.0], [0.0]]
heads 1, permuted True: stored [True, True, True], first elements [[1.0], [2.0], [3.0], [0.0]]
heads 2, permuted False: stored [True, True, True], first elements [[1.0, 1.1], [2.0, 2.1], [3.0, 3.1], [0.0, 0.0]]
heads 2, permuted True: stored [False, False, False], first elements [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [3.1, 0.0]]'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
