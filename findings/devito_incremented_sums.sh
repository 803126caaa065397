#!/usr/bin/env bash
# Guess, written after the first sign: Devito's `Inc(k[z], f[x, y, z])`, the sum over two dimensions, is one kernel of
# a GPU, and the kernel of `Inc(n[x, y], f[x, y, z])` has neighbouring lanes at neighbours of f.
# What happens: only dimensions of the result become the kernel. For k[z] the loops over x and y stay on the host,
# around the pragma: 1,048,576 kernels of 64 additions for 1024 x 1024 x 64 elements. For n[x, y] a thread adds up all
# z alone, so that lanes lie 64 floats apart: 32 sectors a load. Stencils have z on the lanes.
# Version: devito 4.8.23, its OpenACC and OpenMP code for NVIDIA GPUs, which needs no GPU. Seen on 1 December 2026.
# Why it matters: a launch takes microseconds, so the sum takes seconds where 268 MB are read in a tenth of a
# millisecond. With `language="openmp"` it is the same. Means over layers and depth integrals are written so.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check devito==4.8.23
export HOME="$work" DEVITO_LOGGING=ERROR

cat >sums.py <<'PYTHON'
import sys
from importlib.metadata import version

from devito import Eq, Function, Grid, Inc, Operator, configuration

configuration["platform"], configuration["language"] = "nvidiaX", sys.argv[1]
grid = Grid(shape=(1024, 1024, 64))
x, y, z = grid.dimensions
source, output = (Function(name=name, grid=grid, space_order=0) for name in ("f", "g"))
layers = Function(name="k", grid=grid, dimensions=(z,), shape=(64,), space_order=0)
columns = Function(name="n", grid=grid, dimensions=(x, y), shape=(1024, 1024), space_order=0)

print("devito", version("devito"), sys.argv[1])
for statement in Eq(output, source + 1), Inc(layers, source), Inc(columns, source):
    print(f"{statement}:")
    code = str(Operator(statement)).split("START(section0)")[1].split("STOP(section0")[0]
    lines = [line.strip() for line in code.splitlines() if "=" in line or "pragma" in line]
    print(*(line.split(" present")[0] for line in lines), sep="\n")
PYTHON
for language in openacc openmp; do
  venv/bin/python -W ignore sums.py "$language" 2>>messages
done | tee seen

expected='devito 4.8.23 openacc
Eq(g(x, y, z), f(x, y, z) + 1):
#pragma acc parallel loop collapse(3)
for (int x = x_m; x <= x_M; x += 1)
for (int y = y_m; y <= y_M; y += 1)
for (int z = z_m; z <= z_M; z += 1)
g[x][y][z] = f[x][y][z] + 1;
Inc(k(z), f(x, y, z)):
for (int x = x_m; x <= x_M; x += 1)
for (int y = y_m; y <= y_M; y += 1)
#pragma acc parallel loop
for (int z = z_m; z <= z_M; z += 1)
k[z] += f[x][y][z];
Inc(n(x, y), f(x, y, z)):
#pragma acc parallel loop collapse(2)
for (int x = x_m; x <= x_M; x += 1)
for (int y = y_m; y <= y_M; y += 1)
for (int z = z_m; z <= z_M; z += 1)
n[x][y] += f[x][y][z];
devito 4.8.23 openmp
Eq(g(x, y, z), f(x, y, z) + 1):
#pragma omp target teams distribute parallel for collapse(3)
for (int x = x_m; x <= x_M; x += 1)
for (int y = y_m; y <= y_M; y += 1)
for (int z = z_m; z <= z_M; z += 1)
gL0(x, y, z) = fL0(x, y, z) + 1;
Inc(k(z), f(x, y, z)):
for (int x = x_m; x <= x_M; x += 1)
for (int y = y_m; y <= y_M; y += 1)
#pragma omp target teams distribute parallel for
for (int z = z_m; z <= z_M; z += 1)
k[z] += fL0(x, y, z);
Inc(n(x, y), f(x, y, z)):
#pragma omp target teams distribute parallel for collapse(2)
for (int x = x_m; x <= x_M; x += 1)
for (int y = y_m; y <= y_M; y += 1)
for (int z = z_m; z <= z_M; z += 1)
nL0(x, y) += fL0(x, y, z);'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
