"""Calls of CuPy whose kernels NVRTC compiles. CUPY_COMPILE_WITH_PTX lets the recorder see the PTX."""

import os
import sys

os.environ["CUPY_COMPILE_WITH_PTX"] = "1"
os.environ["CUPY_CACHE_DIR"] = f"{os.environ['RECORD_FOLDER']}/cupy"

import cupy as cp
import cupyx
import cupyx.scipy.ndimage as ndimage
import cupyx.scipy.signal as signal
import cupyx.scipy.special as special
import numpy as np
from cupyx import jit
from cupyx.scipy import interpolate, sparse

cp.cuda.set_allocator(None)
cp._core.set_routine_accelerators([])
cp._core.set_reduction_accelerators([])
rng = np.random.default_rng(7)
n = 3000
x = cp.asarray(rng.normal(size=n).astype(np.float32))
y = cp.asarray(rng.normal(size=n).astype(np.float32))
d = cp.asarray(rng.normal(size=n))
h = x.astype(cp.float16)
z = cp.asarray((rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64))
z2 = z.astype(cp.complex128)
i = cp.asarray(rng.integers(-1000, 1000, n).astype(np.int32))
u8 = cp.asarray(rng.integers(0, 255, n).astype(np.uint8))
index = cp.asarray(rng.integers(0, n, 4000))
m = cp.asarray(rng.normal(size=(100, 130)).astype(np.float32))
f = cp.asfortranarray(m)
w = cp.asarray(rng.normal(size=(130, 100)).astype(np.float32))
cube = cp.asarray(rng.normal(size=(12, 20, 33)).astype(np.float32))
picture = cp.asarray(rng.normal(size=(70, 90)).astype(np.float32))
labels = cp.asarray((rng.random((40, 50)) > 0.5).astype(np.int32))
kernel3 = cp.asarray(rng.normal(size=(3, 3)).astype(np.float32))


@jit.rawkernel()
def jit_sum(source, target, size):
    shared = jit.shared_memory(np.float32, 128)
    thread = jit.threadIdx.x
    place = jit.blockIdx.x * np.uint32(128) + thread
    shared[thread] = source[place] if place < size else np.float32(0)
    jit.syncthreads()
    step = np.uint32(64)
    while step > np.uint32(0):
        if thread < step:
            shared[thread] += shared[thread + step]
        jit.syncthreads()
        step = step >> np.uint32(1)
    if thread == 0:
        jit.atomic_add(target, 0, shared[0])


@cp.fuse()
def fused(a, b):
    return cp.sqrt(a * a + b * b) / (1 + cp.abs(a))


hypotenuse = cp.ElementwiseKernel("T a, T b", "T c", "c = sqrt(a * a + b * b)", "hypotenuse")
gathered = cp.ElementwiseKernel("raw T a, int64 k", "T c", "c = a[k] + a[(k + 1) % a.size()]", "gathered")
length = cp.ReductionKernel("T a", "T b", "a * a", "a + b", "b = sqrt(a)", "0", "length")
raw = cp.RawKernel(
    r"""extern "C" __global__ void histogram(const unsigned char* a, int* bins, int n) {
  __shared__ int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int k = blockIdx.x * 256 + threadIdx.x; k < n; k += 256 * gridDim.x) atomicAdd(&own[a[k]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}""",
    "histogram",
)

CALLS = {
    "add": lambda: x + y,
    "add_mixed": lambda: x + d,
    "add_int8": lambda: u8 + u8,
    "add_half": lambda: h + h,
    "multiply_complex": lambda: z * z,
    "multiply_complex128": lambda: z2 * z2,
    "divide_int": lambda: i // 7,
    "remainder": lambda: i % 13,
    "power": lambda: cp.abs(x) ** 1.5,
    "strided": lambda: x[::2] + y[1::2],
    "reversed": lambda: x[::-1] * 2,
    "broadcast_rows": lambda: m + m[0],
    "broadcast_columns": lambda: m + m[:, :1],
    "transposed_add": lambda: m + w.T,
    "fortran_add": lambda: m + f,
    "copy_transposed": lambda: cp.ascontiguousarray(m.T),
    "cast": lambda: x.astype(cp.float64),
    "cast_bool": lambda: i.astype(cp.bool_),
    "exp": lambda: cp.exp(x),
    "sincos": lambda: cp.sin(x) + cp.cos(d),
    "tanh_half": lambda: cp.tanh(h),
    "clip": lambda: cp.clip(x, -1, 1),
    "where": lambda: cp.where(x > 0, x, y),
    "frexp": lambda: cp.frexp(x),
    "divmod": lambda: cp.divmod(i, 7),
    "sum": lambda: x.sum(),
    "sum_half": lambda: h.sum(),
    "sum_complex": lambda: z.sum(),
    "sum_rows": lambda: m.sum(axis=1),
    "sum_columns": lambda: m.sum(axis=0),
    "sum_middle": lambda: cube.sum(axis=1),
    "sum_strided": lambda: m[::2, ::3].sum(axis=1),
    "mean_double": lambda: d.mean(),
    "variance": lambda: m.var(axis=0),
    "argmax": lambda: x.argmax(),
    "argmin_rows": lambda: m.argmin(axis=1),
    "any": lambda: (x > 3).any(),
    "prod": lambda: u8.prod(),
    "nanmax": lambda: cp.nanmax(m, axis=0),
    "norm_kernel": lambda: length(x),
    "norm_kernel_rows": lambda: length(m, axis=1),
    "count_nonzero": lambda: cp.count_nonzero(x > 0.5),
    "take": lambda: x[index],
    "take_rows": lambda: m[index % 100],
    "take_axis1": lambda: cp.take(m, index[:50] % 130, axis=1),
    "take_pairs": lambda: m[index % 100, index % 130],
    "mask": lambda: x[x > 0],
    "put": lambda: x.copy().__setitem__(index, 1.0),
    "put_mask": lambda: x.copy().__setitem__(x > 0, 2.0),
    "scatter_add": lambda: cupyx.scatter_add(x.copy(), index, 1.0),
    "scatter_add_rows": lambda: cupyx.scatter_add(m.copy(), index[:300] % 100, 1.0),
    "scatter_max": lambda: cupyx.scatter_max(i.copy(), index, 5),
    "choose": lambda: cp.choose(abs(i) % 3, cp.stack([x, y, x])),
    "roll": lambda: cp.roll(m, 3, axis=1),
    "tile": lambda: cp.tile(m, (2, 2)),
    "repeat": lambda: cp.repeat(x, 3),
    "concatenate": lambda: cp.concatenate([x, y, x]),
    "stack_columns": lambda: cp.stack([x, y], axis=1),
    "pad": lambda: cp.pad(m, 3),
    "tril": lambda: cp.tril(m),
    "eye": lambda: cp.eye(70, dtype=cp.float32),
    "arange": lambda: cp.arange(n, dtype=cp.float32),
    "linspace": lambda: cp.linspace(0, 1, n),
    "diff": lambda: cp.diff(m, axis=1),
    "cumsum": lambda: cp.cumsum(x),
    "cumsum_rows": lambda: cp.cumsum(m, axis=1),
    "cumprod_columns": lambda: cp.cumprod(m, axis=0),
    "searchsorted": lambda: cp.searchsorted(cp.linspace(-3, 3, 64), d),
    "digitize": lambda: cp.digitize(x, cp.linspace(-3, 3, 64, dtype=cp.float32)),
    "histogram": lambda: cp.histogram(x, 50),
    "bincount": lambda: cp.bincount(u8),
    "bincount_weights": lambda: cp.bincount(u8, weights=d),
    "interp": lambda: cp.interp(d, cp.linspace(-3, 3, 50), cp.linspace(0, 1, 50)),
    "packbits": lambda: cp.packbits(u8),
    "unpackbits": lambda: cp.unpackbits(u8),
    "cross": lambda: cp.cross(m[:, :3], m[:, 3:6]),
    "outer": lambda: cp.outer(x[:200], y[:300]),
    "einsum_diagonal": lambda: cp.einsum("ii->i", m[:100, :100]),
    "kron": lambda: cp.kron(kernel3, m),
    "tensordot_ints": lambda: i[:100].reshape(10, 10) @ i[:100].reshape(10, 10),
    "meshgrid": lambda: cp.meshgrid(x[:100], y[:90])[0].copy(),
    "fused": lambda: fused(x, y),
    "fused_rows": lambda: fused(m, m[0]),
    "hypotenuse": lambda: hypotenuse(x, y),
    "hypotenuse_strided": lambda: hypotenuse(m[:, ::2], m[:, 1::2]),
    "gathered": lambda: gathered(x, index),
    "raw_histogram": lambda: raw((8,), (256,), (u8, cp.zeros(256, cp.int32), np.int32(n))),
    "jit_sum": lambda: jit_sum[(n + 127) // 128, 128](x, cp.zeros(1, cp.float32), n),
    "erf": lambda: special.erf(x),
    "gamma": lambda: special.gamma(d),
    "logsumexp": lambda: special.logsumexp(m, axis=1),
    "softmax": lambda: special.softmax(m, axis=1),
    "zeta": lambda: special.zeta(2 + cp.abs(d), 1.0),
    "correlate": lambda: ndimage.correlate(picture, kernel3),
    "convolve_wrap": lambda: ndimage.convolve(picture, kernel3, mode="wrap"),
    "gaussian": lambda: ndimage.gaussian_filter(picture, 1.5),
    "uniform": lambda: ndimage.uniform_filter(picture, 5),
    "median_filter": lambda: ndimage.median_filter(picture, 3),
    "median_filter_large": lambda: ndimage.median_filter(picture, 7),
    "maximum_filter": lambda: ndimage.maximum_filter(picture, (3, 5)),
    "sobel": lambda: ndimage.sobel(picture),
    "laplace": lambda: ndimage.laplace(cube),
    "rotate": lambda: ndimage.rotate(picture, 30, order=1),
    "zoom": lambda: ndimage.zoom(picture, 1.7, order=3),
    "shift": lambda: ndimage.shift(picture, (1.5, -2.5), order=1),
    "affine": lambda: ndimage.affine_transform(picture, cp.asarray([[0.9, 0.1], [-0.1, 0.9]]), order=1),
    "map_coordinates": lambda: ndimage.map_coordinates(picture, cp.asarray(rng.random((2, 500)) * 60), order=3),
    "spline": lambda: ndimage.spline_filter(picture),
    "label": lambda: ndimage.label(labels),
    "erosion": lambda: ndimage.binary_erosion(labels),
    "grey_dilation": lambda: ndimage.grey_dilation(picture, (3, 3)),
    "distance_transform": lambda: ndimage.distance_transform_edt(labels),
    "sum_labels": lambda: ndimage.sum_labels(picture[:40, :50], labels, cp.arange(2)),
    "histogram_labels": lambda: ndimage.variance(picture[:40, :50], labels, cp.arange(2)),
    "convolve2d": lambda: signal.convolve2d(picture, kernel3),
    "convolve_direct": lambda: cp.convolve(x[:500], y[:40]),
    "sosfilt": lambda: signal.sosfilt(cp.asarray([[0.2, 0.3, 0.2, 1.0, -0.4, 0.1]]), d[:1000]),
    "lfilter": lambda: signal.lfilter(cp.asarray([0.2, 0.3]), cp.asarray([1.0, -0.4]), d[:2000]),
    "medfilt": lambda: signal.medfilt(picture, 3),
    "upfirdn": lambda: signal.upfirdn(y[:30], x[:1000], 3, 2),
    "bspline": lambda: interpolate.make_interp_spline(cp.arange(50.0), d[:50])(cp.linspace(1, 48, 300)),
    "pchip": lambda: interpolate.PchipInterpolator(cp.arange(50.0), d[:50])(cp.linspace(1, 48, 300)),
    "regular_grid": lambda: interpolate.RegularGridInterpolator(
        (cp.arange(70.0), cp.arange(90.0)), picture.astype(cp.float64)
    )(cp.asarray(rng.random((400, 2)) * 60)),
    "rbf": lambda: interpolate.RBFInterpolator(cp.asarray(rng.random((40, 2))), d[:40])(
        cp.asarray(rng.random((90, 2)))
    ),
    "csr_product": lambda: sparse.random(200, 300, 0.05, dtype=cp.float32).tocsr().multiply(2).sum(axis=0),
    "csr_to_dense": lambda: sparse.csr_matrix(m * (m > 1)).toarray(),
    "csr_rows": lambda: sparse.csr_matrix(m * (m > 1))[index[:20] % 100].toarray(),
    "unique": lambda: cp.unique(u8),
    "percentile": lambda: cp.percentile(d, [10, 50]),
    "gradient": lambda: cp.gradient(m),
    "nonzero": lambda: cp.nonzero(m > 1),
    "vander": lambda: cp.vander(x[:100], 5),
    "polyval": lambda: cp.polyval(cp.asarray([1.0, 2.0, 3.0]), d),
    "isclose": lambda: cp.isclose(x, y),
    "array_equal": lambda: cp.array_equal(x, y),
    "rint": lambda: cp.around(x, 2),
    "complex_abs": lambda: cp.abs(z),
    "angle": lambda: cp.angle(z2),
    "bitwise": lambda: (i << 2) ^ (i >> 1) & 255,
    "minimum_at": lambda: cp.minimum.at(i.copy(), index, -5),
    "structure_views": lambda: z.real + z.imag,
    "negative_float16": lambda: -h[::3],
    "cube_copy": lambda: cp.ascontiguousarray(cube.transpose(2, 0, 1)),
    "flip": lambda: cp.ascontiguousarray(cube[:, ::-1, ::-1]),
}

if __name__ == "__main__":
    first, step = map(int, os.environ.get("CUPY_PART", "0/1").split("/"))
    for name, call in list(CALLS.items())[first::step]:
        try:
            call()
            cp.cuda.Device().synchronize()
        except Exception as error:  # a call that this machine's version lacks
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
