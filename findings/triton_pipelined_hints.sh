#!/usr/bin/env bash
# Guess: the eviction policy and the cache modifier of a tl.load reach the machine whether its loop is pipelined or not.
# num_stages changes the schedule, not the caching.
# What happens: a pipelined load becomes cp.async. On sm_80 the policy is dropped; on sm_90 it is kept for L2. `.cv` is
# dropped on both. And evict_last with `.cg` compiles only if pipelined: without, ptxas refuses the combination.
# Version: Triton 3.9.0, targets of sm_80 and sm_90, which need no GPU.
# Why it matters: num_stages is a parameter of autotuning. A measurement of a policy compares nothing where the loop is
# pipelined on sm_80, and tuning can drop or restore a policy without a word.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/multiply_kernel.py" <<'PYTHON'
import contextlib
import io
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.errors import PTXASError

@triton.jit
def multiply(output, left, right, n, SIZE: tl.constexpr, POLICY: tl.constexpr, MODIFIER: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b = left + i[:, None] * n + i[None, :], right + i[:, None] * SIZE + i[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, n, SIZE):
        x = tl.load(a, eviction_policy=POLICY, cache_modifier=MODIFIER)
        y = tl.load(b, eviction_policy=POLICY, cache_modifier=MODIFIER)
        total = tl.dot(x, y, total)
        a += SIZE
        b += SIZE * SIZE
    tl.store(output + i[:, None] * SIZE + i[None, :], total)

def describe_loads(capability, policy, modifier, stages):
    """Return the instructions that load from global memory, or the end of the error."""
    kernel = ASTSource(
        fn=multiply,
        signature={
            "output": "*fp32", "left": "*fp16", "right": "*fp16", "n": "i32",
            "SIZE": "constexpr", "POLICY": "constexpr", "MODIFIER": "constexpr",
        },
        constexprs={(4,): 64, (5,): policy, (6,): modifier},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(4)},
    )
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # an error prints the whole PTX
            compiled = triton.compile(kernel, target=GPUTarget("cuda", capability, 32), options={"num_stages": stages})
    except PTXASError as error:
        return re.search(r"Modifier .*", str(error))[0]
    ptx = compiled.asm["ptx"]
    return " ".join(sorted(set(re.findall(r"\b(?:ld\.global|cp\.async\.c[ag])\S*", ptx))))

print("triton", triton.__version__)
for capability in (80, 90):
    for policy, modifier in (("evict_last", ""), ("", ".cv"), ("evict_last", ".cg")):
        for stages in (1, 3):
            loads = describe_loads(capability, policy, modifier, stages)
            print(f"sm_{capability} {policy}{modifier}, {stages} stages: {loads}")
PYTHON
python3 "$work/multiply_kernel.py" 2>"$work/errors" | tee "$work/seen"

refused="Modifier '.evict_last' cannot be combined with modifier '.cg'"
expected="triton 3.9.0
sm_80 evict_last, 1 stages: ld.global.L1::evict_last.L2::cache_hint.v4.b32
sm_80 evict_last, 3 stages: cp.async.cg.shared.global
sm_80 .cv, 1 stages: ld.global.cv.v4.b32
sm_80 .cv, 3 stages: cp.async.cg.shared.global
sm_80 evict_last.cg, 1 stages: $refused
sm_80 evict_last.cg, 3 stages: cp.async.cg.shared.global
sm_90 evict_last, 1 stages: ld.global.L1::evict_last.L2::cache_hint.v4.b32
sm_90 evict_last, 3 stages: cp.async.cg.shared.global.L2::cache_hint
sm_90 .cv, 1 stages: ld.global.cv.v4.b32
sm_90 .cv, 3 stages: cp.async.cg.shared.global
sm_90 evict_last.cg, 1 stages: $refused
sm_90 evict_last.cg, 3 stages: cp.async.cg.shared.global.L2::cache_hint"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
