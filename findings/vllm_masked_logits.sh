#!/usr/bin/env bash
# Guess, written after reading the source: vLLM's Triton kernel for top-k keeps the k largest logits, as its PyTorch
# function does, whichever finite value stands for a forbidden token.
# What happens: the kernel looks for a threshold by at most 18 divisions of a range by three. Where that ends early,
# the middle of the range is taken. With -1e9 for forbidden tokens top-k 1 keeps 3 tokens, top-k 5 keeps 3, and top-k
# 1000 keeps 2189. With the smallest float32 it keeps all 32,000 for each k. With -1e4 and -inf the result is right.
# Version: vllm 0.33.0, its kernel run on the CPU by the interpreter of Triton 3.9.0; torch 2.13.0. Seen on 1 December
# 2026.
# Why it matters: greedy sampling by top-k 1 and a fixed random seed give other tokens, and nothing is raised. A
# logits processor may write -1e9 or `torch.finfo(dtype).min`. One logit of 1e9 spoils the rest as well.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
venv/bin/python -m pip download -qq --disable-pip-version-check --no-deps --only-binary :all: --dest wheel vllm==0.33.0
# One file of the wheel is run. The interpreter's loops yield Python integers, which have no `to`.
python3 -c "
import glob, zipfile
source = zipfile.ZipFile(*glob.glob('wheel/vllm-*.whl')).read('vllm/v1/sample/ops/topk_topp_triton.py').decode()
open('topk_topp.py', 'w').write(source.replace('row_id.to(tl.int64)', 'row_id'))"
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1

cat >run.py <<'PYTHON'
import sys
from unittest.mock import MagicMock

import torch
import triton
import triton.language as tl

# The file imports its kernels' dependencies from vLLM; only Triton itself is used by the kernel.
for name in (
    "model_executor.warmup.jit_warmup", "model_executor.warmup.jit_warmup_triton_helper", "platforms",
    "utils.gpu_sync_debug", "utils.math_utils", "utils.platform_utils",
):
    sys.modules[f"vllm.{name}"] = MagicMock()
sys.modules["vllm.triton_utils"] = MagicMock(tl=tl, triton=triton)
import topk_topp

def keep_largest(logits, k):
    """Return the number of logits that the kernel keeps; blocks are those of a GPU."""
    row, vocabulary = logits.clone()[None], logits.numel()
    tables = torch.tensor(topk_topp._PERCENTILE_TO_STD_TABLE), torch.tensor(topk_topp._NORMAL_CDF_TO_SIGMA_TABLE)
    topk_topp._topk_topp_kernel[(1,)](
        row, row.stride(0), torch.zeros_like(row), *tables, torch.tensor([k], dtype=torch.int32), row, 1,
        VOCAB_SIZE=vocabulary, MASK_VALUE=float("-inf"), BLOCK_SIZE=8192, BLOCK_SIZE_TRUNC=4096,
        TOPK_ENABLED=True, TOPP_ENABLED=False, SPLIT_COVERS_PONLY=False,
    )
    return int((row > float("-inf")).sum())

print("vllm 0.33.0 triton", triton.__version__, "torch", torch.__version__.split("+")[0])
torch.manual_seed(0)
logits = 3 * torch.randn(32000)
for value in float("-inf"), -1e4, -1e9, torch.finfo(torch.float32).min:
    masked = logits.masked_fill(torch.arange(32000) % 2 == 0, value)
    kept = (f"top-k {k} keeps {keep_largest(masked, k)}," for k in (1, 5, 50, 1000))
    print(f"half of the tokens at {value:g}:", *kept)
PYTHON
venv/bin/python -W ignore run.py 2>messages | tee seen

expected='vllm 0.33.0 triton 3.9.0 torch 2.13.0
half of the tokens at -inf: top-k 1 keeps 1, top-k 5 keeps 5, top-k 50 keeps 50, top-k 1000 keeps 1000,
half of the tokens at -10000: top-k 1 keeps 1, top-k 5 keeps 5, top-k 50 keeps 50, top-k 1000 keeps 1000,
half of the tokens at -1e+09: top-k 1 keeps 3, top-k 5 keeps 3, top-k 50 keeps 37, top-k 1000 keeps 2189,
half of the tokens at -3.40282e+38: top-k 1 keeps 32000, top-k 5 keeps 32000, top-k 50 keeps 32000, top-k 1000 keeps 32000,'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
