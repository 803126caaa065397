#!/usr/bin/env bash
# Guess: `output[i] = source[i]` of a struct of four Float32 is four accesses of 4 bytes in Mojo.
# What happens: 16 loads and 16 stores of a byte, where the struct is ImplicitlyCopyable. The lanes of each lie 16 bytes
# apart: a request touches 16 sectors for 32 bytes. A struct of one vector, aligned to 16, is copied alike. One that is
# TrivialRegisterPassable has four of 4 bytes, as has a copy member by member.
# Version: Mojo 1.2.0 (mojo-compiler, max-mojo-libs 26.7.0), a target of sm_90, which needs no GPU.
# Why it matters: the trait of a type, not an index of the kernel, makes 16 times the requests that one access would.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" \
  mojo-compiler==1.2.0 mojo-compiler-mojo-libs==1.2.0 max-core==26.7.0 max-mojo-libs==26.7.0
export PYTHONPATH="$work/packages" HOME="$work"
mojo=$work/packages/bin/mojo

cat >"$work/copies.mojo" <<'MOJO'
from max.gpu import global_idx
from max.gpu.host import get_gpu_target
from std.compile import compile_info

comptime target = get_gpu_target["sm_90"]()

struct Particle(ImplicitlyCopyable):
    var x: Float32
    var y: Float32
    var z: Float32
    var mass: Float32

struct Vector(ImplicitlyCopyable):
    var values: SIMD[DType.float32, 4]

struct Passable(TrivialRegisterPassable):
    var x: Float32
    var y: Float32
    var z: Float32
    var mass: Float32

def copyable(output: Pointer[Particle, MutAnyOrigin], source: Pointer[Particle, MutAnyOrigin]):
    output[unsafe_offset=global_idx.x] = source[unsafe_offset=global_idx.x]

def copyable_vector(output: Pointer[Vector, MutAnyOrigin], source: Pointer[Vector, MutAnyOrigin]):
    output[unsafe_offset=global_idx.x] = source[unsafe_offset=global_idx.x]

def register_passable(output: Pointer[Passable, MutAnyOrigin], source: Pointer[Passable, MutAnyOrigin]):
    output[unsafe_offset=global_idx.x] = source[unsafe_offset=global_idx.x]

def by_member(output: Pointer[Particle, MutAnyOrigin], source: Pointer[Particle, MutAnyOrigin]):
    var i = global_idx.x
    output[unsafe_offset=i].x = source[unsafe_offset=i].x
    output[unsafe_offset=i].y = source[unsafe_offset=i].y
    output[unsafe_offset=i].z = source[unsafe_offset=i].z
    output[unsafe_offset=i].mass = source[unsafe_offset=i].mass

def main():
    print("kernel copyable\n", compile_info[copyable, emission_kind="asm", target=target]().asm)
    print("kernel copyable_vector\n", compile_info[copyable_vector, emission_kind="asm", target=target]().asm)
    print("kernel register_passable\n", compile_info[register_passable, emission_kind="asm", target=target]().asm)
    print("kernel by_member\n", compile_info[by_member, emission_kind="asm", target=target]().asm)
MOJO
"$mojo" run "$work/copies.mojo" >"$work/kernels.ptx" 2>"$work/messages" || { cat "$work/messages"; exit 1; }
{
  "$mojo" --version 2>"$work/messages" | grep -o 'Mojo [0-9.]*'
  awk '/^kernel/ { name = $2 } /^\t(ld|st)\.global/ { print name ":", $1 }' "$work/kernels.ptx" | sort | uniq -c |
    awk '{ print $2, $1, $3 }'
} | tee "$work/seen"

expected='Mojo 1.2.0
by_member: 4 ld.global.b32
by_member: 4 st.global.b32
copyable: 16 ld.global.b8
copyable: 16 st.global.b8
copyable_vector: 16 ld.global.b8
copyable_vector: 16 st.global.b8
register_passable: 4 ld.global.b32
register_passable: 4 st.global.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
