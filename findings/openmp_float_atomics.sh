#!/usr/bin/env bash
# Guess: `#pragma omp atomic` is one atomic addition for a float or a double, as for an int: `+=`
# and `-=`, by each compiler. PTX has an instruction for each type.
# What happens: GCC makes one of int alone. Of float and double it makes a load and a loop of
# compare-and-swap. So it does in OpenACC and at the end of a reduction. With clang `+=` is one of
# each type, but `-=` of float and double is the loop. `+= -2` is one.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, sm_80, and the
# clang 22.1.8 of ziglang 0.17.1, sm_90.
# Why it matters: who meets another at an address goes round the loop again. So the numbers of
# loads and of atomics depend on the data, on the compiler and on a sign.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages ziglang==0.17.1
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 \
  nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
PATH="$work/usr/bin:$work/packages/ziglang:$PATH"
gcc-12 --version | head -n 1
zig clang --version | head -n 1

cat >updates.c <<'C'
#define PRAGMA(TEXT) _Pragma(#TEXT)
#define UPDATE(NAME, TYPE, STATEMENT) \
  void NAME(TYPE *restrict sums, const int *restrict bins, int n) { \
    PRAGMA(omp target teams distribute parallel for map(tofrom: sums[:n]) map(to: bins[:n])) \
    for (int i = 0; i < n; i++) { PRAGMA(omp atomic) sums[bins[i]] STATEMENT; } }
UPDATE(update_int_add, int, += 2)
UPDATE(update_int_subtract, int, -= 2)
UPDATE(update_float_add, float, += 2)
UPDATE(update_float_negative, float, += -2)
UPDATE(update_float_subtract, float, -= 2)
UPDATE(update_double_add, double, += 2)
UPDATE(update_double_subtract, double, -= 2)
int main(void) { return 0; }
C
gcc-12 -O2 -fopenmp -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" updates.c -o updates
zig clang -O2 -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda --offload-arch=sm_90 -w \
  -nogpulib -nogpuinc --offload-device-only -S updates.c -o clang.ptx
mv updates.xnvptx-none.mkoffload.s gcc.ptx
for compiler in gcc clang; do
  awk -v compiler=$compiler '/^\.(visible |weak )*(func|entry)/ && /update_/ {
      name = $0; sub(/.*update/, "update", name); sub(/(_l[0-9]+)?(_omp|[$]).*/, "", name) }
    match($0, /\tatom\.[a-z0-9.]+/) {
      print compiler, name ":", substr($0, RSTART + 1, RLENGTH - 1) }' $compiler.ptx
done | tee seen

expected='gcc update_int_add: atom.add.u32
gcc update_int_subtract: atom.add.u32
gcc update_float_add: atom.cas.b32
gcc update_float_negative: atom.cas.b32
gcc update_float_subtract: atom.cas.b32
gcc update_double_add: atom.cas.b64
gcc update_double_subtract: atom.cas.b64
clang update_int_add: atom.add.u32
clang update_int_subtract: atom.add.u32
clang update_float_add: atom.add.f32
clang update_float_negative: atom.add.f32
clang update_float_subtract: atom.relaxed.sys.cas.b32
clang update_double_add: atom.add.f64
clang update_double_subtract: atom.relaxed.sys.cas.b64'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
