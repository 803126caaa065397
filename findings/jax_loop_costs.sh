#!/usr/bin/env bash
# Guess: cost_analysis() of a compiled JAX function gives the operations and bytes of all turns of its loops, if their
# number is known: 100 products in lax.scan() have 100 times the flops of one.
# What happens: a loop's body counts once. 100 products of 1024 x 1024 floats have the flops of one, 2.1e9, by lax.scan(),
# lax.fori_loop() and lax.map(). A Python loop has all. Unrolled by 10 a scan has ten. On the CPU a gather counts its
# whole table, too: 32 rows of 1,048,576 are 537 MB "bytes accessed", where a slice of 32 rows is 32 KiB.
# Version: JAX and jaxlib 0.10.2, compiled for the CPU, since a compilation ahead of time for a GPU gives no costs. The
# costs of loops are computed by XLA's common analysis, without optimization, too. Seen on 1 December 2026.
# Why it matters: rooflines take flops and bytes from here. A model whose layers are scanned, as is common, has a
# fraction of its arithmetic, and its bandwidth is wrong by the number of layers.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
export JAX_PLATFORMS=cpu

cat >"$work/show_costs.py" <<'PYTHON'
import jax
from jax import lax

MATRIX = ("float32", 1024, 1024)
TABLE = ("float32", 2**20, 128)
ROWS = ("int32", 32)


def show_costs(label, function, *types):
    lowered = jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, dtype) for dtype, *shape in types))
    lowered_costs, costs = lowered.cost_analysis(), lowered.compile().cost_analysis()
    print(f"{label}: {costs.get('flops', 0):.2g} flops, lowered {lowered_costs.get('flops', 0):.2g};", end=" ")
    print(f"{costs['bytes accessed'] / 1e6:.3g} MB, lowered {lowered_costs['bytes accessed'] / 1e6:.3g}")


def multiply_in_python(x):
    for _ in range(100):
        x = x @ x
    return x


def scan(x, unroll=1):
    return lax.scan(lambda x, _: (x @ x, None), x, None, length=100, unroll=unroll)[0]


print("jax", jax.__version__)
show_costs("one product", lambda x: x @ x, MATRIX)
show_costs("100 in Python", multiply_in_python, MATRIX)
show_costs("100 in scan()", scan, MATRIX)
show_costs("100 in scan(unroll=10)", lambda x: scan(x, unroll=10), MATRIX)
show_costs("100 in fori_loop()", lambda x: lax.fori_loop(0, 100, lambda _, x: x @ x, x), MATRIX)
show_costs("100 in map()", lambda x: lax.map(lambda x: x @ x, x), ("float32", 100, 1024, 1024))
show_costs("a slice of 32 rows", lambda table, rows: table[:32], TABLE, ROWS)
show_costs("32 rows", lambda table, rows: table[rows], TABLE, ROWS)
PYTHON
"$work/venv/bin/python" "$work/show_costs.py" 2>/dev/null | tee "$work/seen"

expected='jax 0.10.2
one product: 2.1e+09 flops, lowered 2.1e+09; 8.39 MB, lowered 12.6
100 in Python: 2.1e+11 flops, lowered 2.1e+11; 839 MB, lowered 1.26e+03
100 in scan(): 2.1e+09 flops, lowered 2.1e+09; 25.2 MB, lowered 12.6
100 in scan(unroll=10): 2.1e+10 flops, lowered 2.1e+10; 92.3 MB, lowered 126
100 in fori_loop(): 2.1e+09 flops, lowered 2.1e+09; 25.2 MB, lowered 12.6
100 in map(): 2.1e+09 flops, lowered 2.1e+09; 445 MB, lowered 466
a slice of 32 rows: 0 flops, lowered 0; 0.0328 MB, lowered 0.0328
32 rows: 96 flops, lowered 96; 537 MB, lowered 0.0345'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
