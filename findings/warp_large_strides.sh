#!/usr/bin/env bash
# Guess: a kernel finds each element of a contiguous array, or Warp refuses the array. It documents a limit of 2^31 for
# lengths, not for bytes.
# What happens: kernels get strides in bytes as 32-bit integers. The stride of 32,768 x 32,768 floats, 4 GiB, becomes 0:
# a[0, 0, 0], a[1, 0, 0] and a[2, 0, 0] are one element. A stride of 2 GiB becomes negative. `strides` in Python is right.
# Version: Warp 1.19.0, on the CPU, which gets the same struct as a GPU. Seen on 30 November 2026.
# Why it matters: three images of 4 GiB fit into an H200. Each thread writes the first one, without an error, and the
# others stay as they were. A two-dimensional array of as many bytes is right.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" warp-lang==1.19.0 numpy==2.4.6
export PYTHONPATH="$work/packages" WARP_CACHE_PATH="$work/cache"

cat >"$work/images.py" <<'PYTHON'
import warp as wp

wp.config.quiet = True

@wp.kernel
def number_images(images: wp.array3d(dtype=wp.float32)):
    i = wp.tid()
    images[i, 0, 0] = float(i + 1)

@wp.kernel
def number_rows(rows: wp.array2d(dtype=wp.float32)):
    i = wp.tid()
    rows[i * 32768, 0] = float(i + 1)

def launch(kernel, *shape):
    """Number the first elements of three images in 12 GiB, of which the system provides three pages."""
    array = wp.empty(shape, dtype=wp.float32, device="cpu")
    firsts = array.numpy().reshape(3, -1)[:, 0]
    firsts[:] = 0
    wp.launch(kernel, dim=3, inputs=[array], device="cpu")
    print(f"{shape}: strides {array.strides}, in the kernel {array.__ctype__().strides[:len(shape)]}: {firsts}")

print("warp", wp.__version__)
launch(number_rows, 3 * 32768, 32768)
launch(number_images, 3, 32768, 32768)
PYTHON
python3 "$work/images.py" 2>"$work/messages" | grep -E '^(warp 1|\()' | tee "$work/seen"

expected='warp 1.19.0
(98304, 32768): strides (131072, 4), in the kernel [131072, 4]: [1. 2. 3.]
(3, 32768, 32768): strides (4294967296, 131072, 4), in the kernel [0, 131072, 4]: [3. 0. 0.]'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
