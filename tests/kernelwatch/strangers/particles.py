"""A project of three kernels: a stencil with a halo, a histogram of chosen cells, and structs taken apart."""

from __future__ import annotations

#: One thread a particle: neighbours take neighbours, or each takes one of another block's.
ALONG = "blockIdx.x * blockDim.x + threadIdx.x;  // of a particle"
ACROSS = "threadIdx.x * gridDim.x + blockIdx.x;  // of a particle"

_SPLIT = """\
struct Particle { float x, y, z; int kind; };

// Of an array of particles: the places, an array each of x, y and z, and the masses that their kinds have.
extern "C" __global__ void split(const Particle* particles, float* places, float* mass, const float* mass_of, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // of a particle
    if (i < n) {
        const Particle one = particles[i];
        places[i] = one.x; places[n + i] = one.y; places[2 * n + i] = one.z;
        mass[i] = mass_of[one.kind];
    }
}
"""

_DIFFUSE = """\
// One step of diffusion: the mean of the four neighbours. A block of 32 x 8 has its tile and a halo in shared memory.
extern "C" __global__ void diffuse(float* out, const float* in, int w, int h)
{
    __shared__ float tile[10][34];
    const int left = blockIdx.x * 32 - 1, top = blockIdx.y * 8 - 1;
    for (int k = threadIdx.y * 32 + threadIdx.x; k < 340; k += 256) {
        const int x = left + k % 34, y = top + k / 34;
        tile[k / 34][k % 34] = x >= 0 && x < w && y >= 0 && y < h ? in[(size_t)y * w + x] : 0.0f;
    }
    __syncthreads();
    const int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y;
    if (x < w && y < h) {
        const int i = threadIdx.x + 1, j = threadIdx.y + 1;
        out[(size_t)y * w + x] = 0.25f * (tile[j - 1][i] + tile[j + 1][i] + tile[j][i - 1] + tile[j][i + 1]);
    }
}
"""

_HISTOGRAM = """\
// How often the chosen cells have each of 64 levels. Each block counts in shared memory first.
extern "C" __global__ void histogram(unsigned* counts, const unsigned char* levels, const int* chosen, int n)
{
    __shared__ unsigned own[64];
    for (int k = threadIdx.x; k < 64; k += blockDim.x) own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[levels[chosen[i]]], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 64; k += blockDim.x) atomicAdd(&counts[k], own[k]);
}
"""

FILES = {"src/particles.cu": _SPLIT, "src/diffuse.cu": _DIFFUSE, "src/histogram.cu": _HISTOGRAM}

BENCHMARKS = '''\
"""What a simulation's kernels do with memory."""

import numpy as np

from kernelwatch import Kernel, in_and_out, inputs, outputs, watch

PARTICLE = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("kind", "i4")])
KINDS = 5


def particles(n):
    """Particles of five kinds; small numbers, so that nothing is rounded."""
    found = np.empty(n, PARTICLE)
    for k, name in enumerate("xyz"):
        found[name] = np.arange(n) * (k + 1) % 4093
    found["kind"] = np.arange(n) * 7 % KINDS
    return found


split = Kernel(
    "split",
    file="src/particles.cu",
    arguments=[
        inputs("particles", "n", PARTICLE, values=particles),
        outputs("places", "3 n", "float32"),
        outputs("mass", "n", "float32"),
        inputs("mass_of", str(KINDS), "float32"),
        "n",
    ],
    block=256,
    over=("n",),
    reference=lambda particles, mass_of: (
        np.stack([particles["x"], particles["y"], particles["z"]]),
        mass_of[particles["kind"]],
    ),
)


def neighbours(image):
    """The mean of four neighbours; there is nothing around the image."""
    wide = np.pad(image, 1)
    return (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]) / 4


diffuse = Kernel(
    "diffuse",
    file="src/diffuse.cu",
    arguments=[outputs("out", "h w", "float32", ulp=4), inputs("image", "h w", "float32"), "w", "h"],
    block=(32, 8),
    over=("w", "h"),
    reference=neighbours,
)

histogram = Kernel(
    "histogram",
    file="src/histogram.cu",
    arguments=[
        in_and_out("counts", "64", "uint32", values="zeros"),
        inputs("levels", "cells", "uint8", index="64"),
        inputs("chosen", "n", "int32", index="cells", seed=1),
        "n",
    ],
    block=128,
    grid=("4",),
    reference=lambda counts, levels, chosen: counts + np.bincount(levels[chosen], minlength=64).astype(np.uint32),
)

for kernel, sizes in (
    (split, {"n": [2000]}),
    (diffuse, {"h": [50], "w": [100]}),
    (histogram, {"cells": [5000], "n": [3000]}),
):
    globals().update(watch(kernel, sizes, archs=["sm_90"]))
'''
