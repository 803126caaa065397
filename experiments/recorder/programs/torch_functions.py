"""Functions compiled by torch.compile, and kernels of Triton. The compilers' PTX is in the folder of the recording."""

import os
import sys

folder = os.environ["RECORD_FOLDER"]
os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
os.environ["TRITON_CACHE_DIR"] = f"{folder}/triton"
os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/inductor"
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import torch
import torch._inductor.config as inductor
import triton
import triton.language as tl
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch.nn import functional

CachingAutotuner.benchmark_all_configs = lambda tuner, *_, **__: dict(zip(tuner.launchers, range(99)))
inductor.triton.autotune_pointwise = False
generator = torch.Generator().manual_seed(7)


def array(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=generator).to(dtype).cuda()


a, b, v = array(120, 130), array(120, 130), array(10_000)
t3, half, image = array(12, 20, 33), array(120, 130, dtype=torch.bfloat16), array(2, 6, 24, 26)
index = torch.randint(0, 120, (500,), generator=generator).cuda()
ints = torch.randint(-100, 100, (120, 130), generator=generator, dtype=torch.int32).cuda()
table, weight = array(120, 48), array(130)

FUNCTIONS = {
    "gelu": (lambda a: functional.gelu(a) * 2, a),
    "transposed_add": (lambda a, b: a.t().contiguous() + b.view(130, 120), a, b),
    "permute3": (lambda t: t.permute(2, 0, 1).contiguous() + 1, t3),
    "sum": (torch.sum, v),
    "sum_rows": (lambda a: a.sum(1), a),
    "sum_columns": (lambda a: a.sum(0), a),
    "softmax": (lambda a: a.softmax(1), a),
    "softmax_columns": (lambda a: a.softmax(0), a),
    "layer_norm": (lambda a, w: functional.layer_norm(a, (130,), w), a, weight),
    "rms_norm": (lambda a, w: functional.rms_norm(a, (130,), w), a, weight),
    "group_norm": (lambda p: functional.group_norm(p, 3), image),
    "embedding": (lambda k, e: functional.embedding(k, e) * 2, index, table),
    "gather": (lambda a, k: a.gather(0, k[:130].view(1, 130).expand(9, 130)), a, index),
    "index_add": (lambda a, k: torch.zeros_like(a).index_add(0, k[:120], a), a, index),
    "scatter_reduce": (lambda v, k: torch.zeros(120, device="cuda").scatter_reduce(0, k, v[:500], "amax"), v, index),
    "bincount_like": (
        lambda k: torch.zeros(120, device="cuda").index_put((k,), torch.ones(500, device="cuda"), True),
        index,
    ),
    "concatenate": (lambda a, b: torch.cat([a, b * 2], 1), a, b),
    "pad_reflect": (lambda p: functional.pad(p, (3, 3, 2, 2), "reflect"), image),
    "roll_flip": (lambda a: a.roll(3, 1).flip(0), a),
    "average_pool": (lambda p: functional.avg_pool2d(p, 3, 2, 1), image),
    "max_pool": (lambda p: functional.max_pool2d(p, 3, 2, 1), image),
    "upsample": (lambda p: functional.interpolate(p, scale_factor=2, mode="bilinear"), image),
    "cumsum": (lambda a: a.cumsum(1), a),
    "cumsum_columns": (lambda a: a.cumsum(0), a),
    "sort": (lambda a: a[:, :64].sort(1)[0], a),
    "argmax": (lambda a: a.argmax(1), a),
    "variance": (lambda a: torch.var_mean(a, 0), a),
    "bf16": (lambda h: (h * 2 + 1).float().sum(1), half),
    "bf16_transpose": (lambda h: h.t().contiguous() * 3, half),
    "float8": (lambda a: a.to(torch.float8_e4m3fn).float() + 1, a),
    "integers": (lambda i: (i // 7 + i % 5) & 3, ints),
    "dropout": (lambda a: functional.dropout(a, 0.3), a),
    "cross_entropy": (lambda a, k: functional.cross_entropy(a, k[:120]), a, index),
    "rope": (lambda a: torch.cat([-a[:, 65:], a[:, :65]], 1) * a.cos() + a * a.sin(), a),
    "swiglu": (lambda a: functional.silu(a[:, :65]) * a[:, 65:], a),
    "masked": (lambda a, b: torch.where(a > b, a, torch.zeros_like(a)).tril(), a, b),
    "quantize": (lambda a: (a / a.abs().amax(1, keepdim=True) * 127).round().to(torch.int8), a),
    "outer": (lambda v: v[:200, None] * v[None, :300], v),
    "logsumexp_large": (lambda v: v.view(4, 2500).logsumexp(1), v),
    "strided": (lambda a: a[::3, 1::2] + 1, a),
    "as_strided": (lambda v: v.as_strided((100, 50), (7, 3)).sum(1), v),
    "complex_views": (lambda a, b: torch.hypot(a, b) + torch.atan2(a, b), a, b),
    "unfold": (lambda v: v.unfold(0, 16, 5).mean(1), v),
    "searchsorted": (lambda v: torch.bucketize(v, torch.linspace(-3, 3, 64, device="cuda")), v),
}
GRADIENTS = {
    "layer_norm": lambda a: functional.layer_norm(a, (130,)).square().sum(),
    "softmax": lambda a: a.softmax(1).square().sum(),
    "embedding": lambda e: functional.embedding(index % e.shape[0], e).square().sum(),
    "max_pool": lambda p: functional.max_pool2d(p.view(1, 1, 120, 130), 2).square().sum(),
    "gelu": lambda a: functional.gelu(a).sum(),
    "gather": lambda a: a[index % a.shape[0]].cos().sum(),
}


@triton.jit
def multiply(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0)
        right = tl.load(
            b + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0
        )
        total = tl.dot(left, right, total)
    tl.store(
        c + rows[:, None] * N + columns[None, :],
        total.to(c.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


@triton.jit
def attend(q, k, v, o, L, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + depth[None, :])
    most = tl.full((BM,), float("-inf"), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, L, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + columns[None, :] * D + depth[:, None])
        scores = tl.dot(queries, keys) * 0.125
        newest = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - newest[:, None])
        scale = tl.exp(most - newest)
        values = tl.load(v + columns[:, None] * D + depth[None, :])
        total = tl.dot(weights.to(values.dtype), values, total * scale[:, None])
        sums, most = sums * scale + tl.sum(weights, 1), newest
    tl.store(o + rows[:, None] * D + depth[None, :], (total / sums[:, None]).to(o.dtype.element_ty))


@triton.jit
def count_values(x, bins, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < n, other=0)
    tl.atomic_add(bins + value, 1, mask=place < n)


@triton.jit
def scan_rows(x, y, n, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + place, mask=place < n, other=0)
    tl.store(y + row * n + place, tl.cumsum(value, 0), mask=place < n)


def launch_triton():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        left, right = array(100, 96, dtype=dtype), array(96, 80, dtype=dtype)
        for warps in (4, 8):
            multiply[(2, 2)](
                left, right, torch.empty(100, 80, dtype=dtype, device="cuda"), 100, 80, 96, 64, 64, 32, num_warps=warps
            )
    queries, keys, values = (array(128, 64, dtype=torch.float16) for _ in range(3))
    for stages in (1, 2, 3):
        attend[(2,)](queries, keys, values, torch.empty_like(queries), 128, 64, 64, 64, num_stages=stages)
    count_values[(4,)](
        ints.abs().flatten()[:4000].contiguous(), torch.zeros(128, dtype=torch.int32, device="cuda"), 3900, 1024
    )
    scan_rows[(120,)](a, torch.empty_like(a), 130, 256)


if __name__ == "__main__":
    for name, (function, *arguments) in FUNCTIONS.items():
        try:
            torch.compile(function, dynamic=False)(*arguments)
        except Exception as error:  # a function that this machine's version lacks
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    for name, function in GRADIENTS.items():
        leaf = (table if name == "embedding" else a).clone().requires_grad_()
        try:
            torch.compile(function, dynamic=False)(leaf).backward()
        except Exception as error:  # as above
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    launch_triton()
    torch.cuda.synchronize()
