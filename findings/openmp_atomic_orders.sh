#!/usr/bin/env bash
# Guess, written after the first sign: `#pragma omp atomic capture acq_rel` orders a target region's accesses before and
# after it, and `atomic update release` those before it: a count so updated announces the data that was stored before.
# What happens: with GCC a capture is between two fences of the system, and an update is behind one. With clang a capture
# is a relaxed `atom.global.add.u32` without a fence, with seq_cst, too. An update's fence, __kmpc_flush, comes behind it,
# where it cannot help. clang's `atomic read acquire` and `atomic write release` are ordered.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, sm_80, and the clang 22.1.8 of ziglang
# 0.17.1, sm_90. Seen on 1 December 2026.
# Why it matters: the last team to count itself reads the other teams' partial sums, as reductions are written. With
# clang it may read them from L1 as they were, or before they are stored. The count itself is right.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages ziglang==0.17.1
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
PATH="$work/usr/bin:$work/packages/ziglang:$PATH"
gcc-12 --version | head -n 1
zig clang --version | head -n 1

cat >orders.c <<'C'
#define PRAGMA(TEXT) _Pragma(#TEXT)
#define REGION(NAME, DIRECTIVE, STATEMENT)                     \
  void NAME(int *count, int *data) {                           \
    PRAGMA(omp target map(tofrom: count[:1], data[:4])) {      \
      int old = 0;                                             \
      data[0] = 1;                                             \
      PRAGMA(omp atomic DIRECTIVE)                             \
      STATEMENT                                                \
      data[1] = old;                                           \
    }                                                          \
  }
REGION(capture_relaxed, capture relaxed, { old = count[0]; count[0] += 1; })
REGION(capture_acq_rel, capture acq_rel, { old = count[0]; count[0] += 1; })
REGION(capture_seq_cst, capture seq_cst, { old = count[0]; count[0] += 1; })
REGION(update_release, update release, count[0] += 1;)
REGION(read_acquire, read acquire, old = count[0];)
REGION(write_release, write release, count[0] = 1;)
int main(void) { return 0; }
C
gcc-12 -O2 -fopenmp -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" orders.c -o orders
zig clang -O2 -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda --offload-arch=sm_90 -w \
  -nogpulib -nogpuinc --offload-device-only -S orders.c -o clang.ptx
mv orders.xnvptx-none.mkoffload.s gcc.ptx
# __kmpc_flush is clang's call of a fence.
for compiler in gcc clang; do
  awk -v compiler=$compiler '/^(\/\/ BEGIN FUNCTION DEF|\.visible \.entry|\.weak .*entry)/ {
      name = match($0, /(capture|update|read|write)_(relaxed|acq_rel|seq_cst|release|acquire)/) ? substr($0, RSTART, RLENGTH) : "" }
    name && match($0, /(atom|membar|fence|ld\.acquire|st\.release)\.[a-z0-9.:_]+|call.* __kmpc_flush/) {
      seen[name] = seen[name] " " substr($0, RSTART, RLENGTH) }
    END { for (name in seen) print compiler " " name ":" seen[name] }' $compiler.ptx | LC_ALL=C sort
done | tee seen

expected='gcc capture_acq_rel: membar.sys atom.add.u32 membar.sys
gcc capture_relaxed: atom.add.u32
gcc capture_seq_cst: membar.sys atom.add.u32 membar.sys
gcc read_acquire: membar.sys
gcc update_release: membar.sys atom.add.u32
gcc write_release: membar.sys
clang capture_acq_rel: atom.global.add.u32
clang capture_relaxed: atom.global.add.u32
clang capture_seq_cst: atom.global.add.u32
clang read_acquire: ld.acquire.sys.global.b32 call.uni __kmpc_flush
clang update_release: atom.global.add.u32 call.uni __kmpc_flush
clang write_release: st.release.sys.global.b32 call.uni __kmpc_flush'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
