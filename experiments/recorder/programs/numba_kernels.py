"""Kernels of Numba. Their PTX goes to the folder of the recording."""

import math
import os
import sys
from pathlib import Path

import numpy as np

np.row_stack = np.vstack  # Numba 0.6x with NumPy 2.5
from numba import cuda, float32, int32
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

folder = Path(os.environ["RECORD_FOLDER"])
rng = np.random.default_rng(7)
RECORD = np.dtype([("x", np.float32), ("y", np.float64), ("k", np.int16)], align=True)


@cuda.jit
def blur(a, b):
    x, y = cuda.grid(2)
    if 0 < y < a.shape[0] - 1 and 0 < x < a.shape[1] - 1:
        b[y, x] = (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]) / 4


@cuda.jit
def multiply(a, b, c):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range((a.shape[1] + 15) // 16):
        left[j, i] = a[y, k * 16 + i] if y < a.shape[0] and k * 16 + i < a.shape[1] else 0
        right[j, i] = b[k * 16 + j, x] if x < b.shape[1] and k * 16 + j < b.shape[0] else 0
        cuda.syncthreads()
        for m in range(16):
            total += left[j, m] * right[m, i]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


@cuda.jit
def histogram(a, bins):
    own = cuda.shared.array(64, int32)
    own[cuda.threadIdx.x % 64] = 0
    cuda.syncthreads()
    for k in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        cuda.atomic.add(own, a[k], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 64:
        cuda.atomic.add(bins, cuda.threadIdx.x, own[cuda.threadIdx.x])


@cuda.jit
def shuffle_sum(a, b):
    k = cuda.grid(1)
    value = a[k] if k < a.size else 0.0
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if cuda.laneid == 0 and k < a.size:
        b[k // 32] = value


@cuda.jit
def records(a, b):
    k = cuda.grid(1)
    if k < a.size:
        b[k] = a[k].x + a[k].y * a[k].k


@cuda.jit
def local_sort(a):
    k = cuda.grid(1)
    if k < a.shape[0]:
        own = cuda.local.array(16, float32)
        for m in range(16):
            own[m] = a[k, m]
        for m in range(15):
            for p in range(15 - m):
                if own[p] > own[p + 1]:
                    own[p], own[p + 1] = own[p + 1], own[p]
        for m in range(16):
            a[k, m] = own[m]


@cuda.jit
def black_scholes(price, strike, years, call):
    k = cuda.grid(1)
    if k < price.size:
        root = math.sqrt(years[k])
        d1 = (math.log(price[k] / strike[k]) + 0.07 * years[k]) / (0.3 * root)
        call[k] = price[k] * 0.5 * (1 + math.erf(d1 / 1.41421356)) - strike[k] * math.exp(-0.02 * years[k])


@cuda.jit
def complex_scale(a, b):
    k = cuda.grid(1)
    if k < a.size:
        b[k] = a[k] * (2 + 1j)


@cuda.jit
def draw(states, out):
    k = cuda.grid(1)
    if k < out.size:
        out[k] = xoroshiro128p_uniform_float32(states, k)


@cuda.jit
def gather(a, index, b):
    k = cuda.grid(1)
    if k < b.size:
        b[k] = a[index[k]]


@cuda.jit
def transpose(a, b):
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x, y = cuda.blockIdx.y * 32 + cuda.threadIdx.x, cuda.blockIdx.x * 32 + cuda.threadIdx.y
    if x < b.shape[1] and y < b.shape[0]:
        b[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def move(values, dtype=None):
    return cuda.to_device(np.ascontiguousarray(values, dtype))


def draw_normal(*shape, dtype=np.float32):
    return move(rng.normal(size=shape), dtype)


def launch_records():
    filled = np.zeros(3000, RECORD)
    filled["x"], filled["y"], filled["k"] = 1.5, 2.5, 3
    records[24, 128](move(filled), cuda.device_array(3000))


matrix, vector = draw_normal(70, 90), draw_normal(5000)
fortran = cuda.to_device(np.asfortranarray(rng.normal(size=(70, 90)).astype(np.float32)))
prices = [move(rng.random(3000) + 0.5, np.float64) for _ in range(3)]
index = move(rng.integers(0, 2500, 3000))
LAUNCHES = {
    "blur": lambda: blur[(3, 5), (32, 16)](matrix, cuda.device_array((70, 90), np.float32)),
    "blur of columns": lambda: blur[(3, 5), (32, 16)](fortran, cuda.device_array((70, 90), np.float32)),
    "product": lambda: multiply[(4, 5), (16, 16)](matrix, draw_normal(90, 50), cuda.device_array((70, 50), np.float32)),
    "histogram": lambda: histogram[8, 128](move(rng.integers(0, 64, 5000), np.int32), move(np.zeros(64), np.int32)),
    "sums of warps": lambda: shuffle_sum[40, 128](vector, cuda.device_array(157, np.float32)),
    "records": launch_records,
    "local sort": lambda: local_sort[4, 64](draw_normal(250, 16)),
    "Black-Scholes": lambda: black_scholes[24, 128](*prices, cuda.device_array(3000)),
    "complex64": lambda: complex_scale[24, 128](
        draw_normal(3000, dtype=np.complex64), cuda.device_array(3000, np.complex64)
    ),
    "complex128": lambda: complex_scale[24, 128](
        draw_normal(3000, dtype=np.complex128), cuda.device_array(3000, np.complex128)
    ),
    "random": lambda: draw[8, 128](create_xoroshiro128p_states(1024, seed=1), cuda.device_array(1000, np.float32)),
    "gather": lambda: gather[24, 128](vector, index, cuda.device_array(3000, np.float32)),
    "strided gather": lambda: gather[24, 128](vector[::2], index, cuda.device_array(3000, np.float32)),
    "transpose": lambda: transpose[(3, 3), (32, 32)](matrix, cuda.device_array((90, 70), np.float32)),
}

if __name__ == "__main__":
    for name, launch in LAUNCHES.items():
        try:
            launch()
            cuda.synchronize()
        except Exception as error:  # a launch that this machine's version cannot compile
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    for name, kernel in list(globals().items()):
        if hasattr(kernel, "inspect_asm"):
            for place, ptx in enumerate(kernel.inspect_asm().values()):
                (folder / f"{name}-{place}.ptx").write_text(ptx)
