"""Functions compiled by XLA. XLA leaves its PTX in the folder of the recording."""

import os
import sys

folder = os.environ["RECORD_FOLDER"]
os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_FLAGS"] = (
    f"--xla_gpu_enable_command_buffer= --xla_gpu_autotune_level=0 --xla_dump_to={folder}/xla-{os.getpid()} "
    "--xla_gpu_dump_llvmir --xla_dump_emitter_re=.*"
)

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(7)


def array(*shape, dtype=np.float32):
    return jnp.asarray(rng.normal(size=shape).astype(dtype))


a, b, v = array(120, 130), array(120, 130), array(10_000)
t3 = array(12, 20, 33)
half = array(120, 130).astype(jnp.bfloat16)
ints = jnp.asarray(rng.integers(-100, 100, (120, 130)).astype(np.int32))
index = jnp.asarray(rng.integers(0, 120, 500).astype(np.int32))
image = array(2, 20, 22, 3)

FUNCTIONS = {
    "add": (lambda a, b: a + b * 2, a, b),
    "gelu": (jax.nn.gelu, a),
    "transpose": (lambda a: a.T.copy(), a),
    "transpose_add": (lambda a, b: a.T + b.reshape(130, 120), a, b),
    "transpose3": (lambda t: jnp.transpose(t, (2, 0, 1)) * 2, t3),
    "sum": (jnp.sum, v),
    "sum_rows": (lambda a: a.sum(1), a),
    "sum_columns": (lambda a: a.sum(0), a),
    "sum_middle": (lambda t: t.sum(1), t3),
    "softmax": (jax.nn.softmax, a),
    "layer_norm": (lambda a: (a - a.mean(1, keepdims=True)) / jnp.sqrt(a.var(1, keepdims=True) + 1e-5), a),
    "logsumexp": (lambda a: jax.nn.logsumexp(a, 0), a),
    "argmax": (lambda a: a.argmax(1), a),
    "cumsum": (lambda v: jnp.cumsum(v), v),
    "cumsum_rows": (lambda a: jnp.cumsum(a, 1), a),
    "sort": (lambda a: jnp.sort(a, 1), a),
    "top_k": (lambda a: jax.lax.top_k(a, 5), a),
    "gather": (lambda a, k: a[k], a, index),
    "gather_columns": (lambda a, k: a[:, k], a, index),
    "scatter_add": (lambda a, k: a.at[k].add(1.0), a, index),
    "scatter_set": (lambda a, k: a.at[k % 7].set(2.0), a, index),
    "segment_sum": (lambda a, k: jax.ops.segment_sum(a[:100], k[:100] % 9, 9), a, index),
    "concatenate": (lambda a, b: jnp.concatenate([a, b], 1), a, b),
    "pad": (lambda a: jnp.pad(a, 3), a),
    "reverse": (lambda a: a[::-1, ::-1] * 1.5, a),
    "slice": (lambda a: a[3:77:2, 5:90:3] + 1, a),
    "dynamic_update": (lambda a: jax.lax.dynamic_update_slice(a, jnp.zeros((5, 5)), (3, 4)), a),
    "bf16_add": (lambda h: h * 2 + 1, half),
    "bf16_sum": (lambda h: h.sum(1), half),
    "bf16_transpose": (lambda h: h.T + 1, half),
    "int_mod": (lambda i: i % 7 + i // 3, ints),
    "int_sum": (lambda i: i.sum(), ints),
    "compare": (lambda a, b: (a > b) & (a < 2), a, b),
    "where": (lambda a, b: jnp.where(a > 0, a, b), a, b),
    "random": (lambda: jax.random.normal(jax.random.key(0), (3000,)),),
    "pool": (lambda p: jax.lax.reduce_window(p, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), image),
    "average_window": (lambda v: jax.lax.reduce_window(v, 0.0, jax.lax.add, (7,), (1,), "SAME"), v),
    "gradient": (jax.grad(lambda a: jnp.tanh(a).sum() + (a * a).mean()), a),
    "softmax_gradient": (jax.grad(lambda a: (jax.nn.softmax(a) ** 2).sum()), a),
    "einsum_small": (lambda t: jnp.einsum("abc,abc->b", t, t), t3),
    "outer": (lambda v: v[:200, None] * v[None, :300], v),
    "one_hot": (lambda k: jax.nn.one_hot(k, 33), index),
    "complex": (lambda a, b: jnp.abs(a + 1j * b), a, b),
    "f64_like_i8": (lambda i: i.astype(jnp.int8) * jnp.int8(2), ints),
    "dot_int8": (lambda i: (i[:64, :64].astype(jnp.int8) * 3).sum(0), ints),
    "matmul_bf16": (lambda h: h[:, :128].astype(jnp.bfloat16) @ h[:, :128].T.astype(jnp.bfloat16), half),
    "triangular": (lambda a: jnp.tril(a) + 1, a),
    "roll": (lambda a: jnp.roll(a, 3, 1), a),
    "scan": (lambda a: jax.lax.scan(lambda c, r: (c * 0.5 + r, c), a[0], a)[1], a),
    "fori": (lambda a: jax.lax.fori_loop(0, 3, lambda k, c: c * 1.1 + k, a), a),
}

if __name__ == "__main__":
    for name, (function, *arguments) in FUNCTIONS.items():
        try:
            jax.block_until_ready(jax.jit(function)(*arguments))
        except Exception as error:  # a function that this machine's version lacks
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
