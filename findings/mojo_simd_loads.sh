#!/usr/bin/env bash
# Guess: four neighbouring floats are one access of 16 bytes in Mojo, as an element of a pointer to SIMD[DType.float32,
# 4]. So they are by `unsafe_load[width=4]`. In a kernel, align_of gives 16 for the type.
# What happens: four accesses of 4 bytes by either way. The lanes of each lie 16 bytes apart: a request touches 16
# sectors for the bytes of 4. Eight float16 are eight of 2. `alignment=16` makes one access, as does vectorize() of a
# TileTensor.
# Version: Mojo 1.2.0 (mojo-compiler, max-mojo-libs 26.7.0), a target of sm_90, which needs no GPU.
# Why it matters: an array whose elements are vectors is written to be read in vectors. Its copy asks for four times the
# sectors, and nothing in its source is strided.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" \
  mojo-compiler==1.2.0 mojo-compiler-mojo-libs==1.2.0 max-core==26.7.0 max-mojo-libs==26.7.0
export PYTHONPATH="$work/packages" HOME="$work"
mojo=$work/packages/bin/mojo

cat >"$work/copies.mojo" <<'MOJO'
from layout import TileTensor, row_major
from max.gpu import global_idx
from max.gpu.host import get_gpu_target
from std.compile import compile_info
from std.sys.info import align_of

comptime Vector = SIMD[DType.float32, 4]
comptime Vectors = Pointer[Vector, MutAnyOrigin]
comptime Floats = Pointer[Float32, MutAnyOrigin]
comptime Halves = Pointer[Float16, MutAnyOrigin]
comptime Matrix = TileTensor[DType.float32, type_of(row_major[64, 64]()), MutAnyOrigin]
comptime target = get_gpu_target["sm_90"]()

def element(output: Vectors, source: Vectors):
    output[unsafe_offset=global_idx.x] = source[unsafe_offset=global_idx.x]

def width_4(output: Floats, source: Floats):
    var first = 4 * global_idx.x
    output.unsafe_store(first, source.unsafe_load[width=4](first))

def width_8_halves(output: Halves, source: Halves):
    var first = 8 * global_idx.x
    output.unsafe_store(first, source.unsafe_load[width=8](first))

def alignment_16(output: Floats, source: Floats):
    var first = 4 * global_idx.x
    output.unsafe_store[alignment=16](first, source.unsafe_load[width=4, alignment=16](first))

def tile_tensor(output: Matrix, source: Matrix):
    var row = global_idx.y
    output.vectorize[1, 4]()[row, global_idx.x] = source.vectorize[1, 4]()[row, global_idx.x]

def alignment(output: Pointer[Int32, MutAnyOrigin]):
    output[] = Int32(align_of[Vector]())

def main():
    print("kernel alignment\n", compile_info[alignment, emission_kind="asm", target=target]().asm)
    print("kernel element\n", compile_info[element, emission_kind="asm", target=target]().asm)
    print("kernel width_4\n", compile_info[width_4, emission_kind="asm", target=target]().asm)
    print("kernel width_8_halves\n", compile_info[width_8_halves, emission_kind="asm", target=target]().asm)
    print("kernel alignment_16\n", compile_info[alignment_16, emission_kind="asm", target=target]().asm)
    print("kernel tile_tensor\n", compile_info[tile_tensor, emission_kind="asm", target=target]().asm)
MOJO
"$mojo" run "$work/copies.mojo" >"$work/kernels.ptx" 2>"$work/messages" || { cat "$work/messages"; exit 1; }
{
  "$mojo" --version 2>"$work/messages" | grep -o 'Mojo [0-9.]*'
  awk '/^kernel/ { name = $2 } /^\t(ld|st)\.global/ { print name ":", $1, name == "alignment" ? $NF : "" }' \
    "$work/kernels.ptx" | uniq -c | awk '{ print $2, $1, $3, $4 }' | sed 's/ *$//'
} | tee "$work/seen"

expected='Mojo 1.2.0
alignment: 1 st.global.b32 16;
element: 4 ld.global.b32
element: 4 st.global.b32
width_4: 4 ld.global.b32
width_4: 4 st.global.b32
width_8_halves: 8 ld.global.b16
width_8_halves: 8 st.global.b16
alignment_16: 1 ld.global.v4.b32
alignment_16: 1 st.global.v4.b32
tile_tensor: 1 ld.global.v4.b32
tile_tensor: 1 st.global.v4.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
