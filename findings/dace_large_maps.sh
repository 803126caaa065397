#!/usr/bin/env bash
# Guess: a map over a float32[60000, 100000] reaches each element on a GPU, as DaCe's integers have 64 bits by default.
# What happens: the kernel's indices are `int`, and so is `100000 * i + j`. Row 21,475 begins 8 GiB before the array, and
# row 42,950 at element 32,704 of row 0. Symbols M and N as lengths are int, too, though they are declared without a type.
# Symbols that are declared as dace.int64 make 64 bits.
# Version: DaCe 1.0.2, whose generated CUDA C++ is read. Seen on 30 November 2026.
# Why it matters: 24 GB of float32 fit into a GPU, and from 8 GiB on results are wrong without an error. Rows from 42,950
# on overwrite the first ones.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check dace==1.0.2 networkx==3.4.2 numpy==1.26.4
export HOME="$work"
cd "$work"

cat >"$work/maps.py" <<'PYTHON'
import ctypes
import re

import dace

M, N = dace.symbol("M"), dace.symbol("N")
M64, N64 = dace.symbol("M64", dace.int64), dace.symbol("N64", dace.int64)

@dace.program
def constants(source: dace.float32[60000, 100000], output: dace.float32[60000, 100000]):
    for i, j in dace.map[0:60000, 0:100000]:
        output[i, j] = source[i, j] + 1

@dace.program
def symbols(source: dace.float32[M, N], output: dace.float32[M, N]):
    for i, j in dace.map[0:M, 0:N]:
        output[i, j] = source[i, j] + 1

@dace.program
def symbols_64(source: dace.float32[M64, N64], output: dace.float32[M64, N64]):
    for i, j in dace.map[0:M64, 0:N64]:
        output[i, j] = source[i, j] + 1

print("dace", dace.__version__)
print("default integers:", dace.Config.get("compiler", "default_data_types"))
for program in constants, symbols, symbols_64:
    sdfg = program.to_sdfg()
    sdfg.apply_gpu_transformations()
    (code,) = (part.clean_code for part in sdfg.generate_code() if part.language == "cu")
    index = re.search(r"gpu_output\[(.*)\] = ", code)[1]
    names = set(re.findall(r"[A-Za-z]\w*", index))
    types = {re.search(rf"(\w+(?: long)?) {name}\b[ ,)]", code)[1] for name in names}
    integer = ctypes.c_int32 if types == {"int"} else ctypes.c_int64
    elements = [integer(eval(index, dict(i=i, j=0, N=100000, N64=100000))).value for i in (21474, 21475, 42950)]
    print(f"{program.name}: {index} of {', '.join(sorted(types))}:", *elements)
PYTHON
"$work/venv/bin/python" -W ignore "$work/maps.py" | tee "$work/seen"

expected='dace 1.0.2
default integers: Python
constants: ((100000 * i) + j) of int: 2147400000 -2147467296 32704
symbols: ((N * i) + j) of int: 2147400000 -2147467296 32704
symbols_64: ((N64 * i) + j) of int, int64_t: 2147400000 2147500000 4295000000'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
