#!/usr/bin/env bash
# Guess: each field begins at an address that suits a GPU: of 256 bytes as cudaMalloc() gives, or of 16 at least.
# What happens: fields that are declared one after another are members of one struct, each aligned to its element alone. A
# float32 field after one of 1001 elements begins 4 bytes past a multiple of 32. So does a component of a vector field with
# `layout=SOA`. Fields of a FieldsBuilder of their own begin at a multiple of 128.
# Version: Taichi 1.7.4 and its fork Quadrants 1.3.3, addresses of ti.get_addr() on the CPU. The struct is laid out before
# a backend generates code.
# Why it matters: a warp that reads 32 neighbours touches 5 sectors instead of 4, and no 16-byte access is possible. The
# number changes with the length of another field.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/addresses.py" <<'PYTHON'
import importlib
import sys

ti = importlib.import_module(sys.argv[1])
ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)

@ti.kernel
def address(field: ti.template()) -> ti.u64:
    return ti.get_addr(field, [0])

def distances(*fields):
    return [address(field) - address(fields[0]) for field in fields]

def build_alone(length):
    field = ti.field(ti.f32)
    builder = ti.FieldsBuilder()
    builder.dense(ti.i, length).place(field)
    builder.finalize()
    return field

print(sys.argv[1], ".".join(map(str, ti.__version__)))
declared = [ti.field(ti.f32, shape=length) for length in (1001, 1024, 1024)]
vectors = ti.Vector.field(3, ti.f32, shape=1001, layout=ti.Layout.SOA)
alone = [build_alone(length) for length in (1001, 1024)]
print("first field: multiple of 128:", address(declared[0]) % 128 == 0)
print("fields of 1001, 1024 and 1024 float32 begin at:", *distances(*declared))
print("components of 1001 vectors begin at:", *distances(*(vectors.get_scalar_field(i) for i in range(3))))
print("fields built alone: multiples of 128:", [address(field) % 128 == 0 for field in alone])
PYTHON

for package in taichi==1.7.4 quadrants==1.3.3; do
  python3 -m pip install -qq --target "$work/packages" "$package"
  PYTHONPATH="$work/packages" python3 "$work/addresses.py" "${package%==*}" | sed -n "/^${package%==*} /,\$p"
  rm -rf "$work/packages"
done | tee "$work/seen"

expected=$(for version in 'taichi 1.7.4' 'quadrants 1.3.3'; do
  echo "$version
first field: multiple of 128: True
fields of 1001, 1024 and 1024 float32 begin at: 0 4004 8100
components of 1001 vectors begin at: 0 4004 8008
fields built alone: multiples of 128: [True, True]"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
