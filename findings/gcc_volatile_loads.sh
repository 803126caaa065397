#!/usr/bin/env bash
# Guess: in a region that GCC offloads, each read of a `volatile int` is a load, and each write is a
# store. `acc atomic read` is a load, too.
# What happens: two reads are two loads in PTX, but plain ones, without `.volatile` or `.relaxed`.
# ptxas makes one of them. It removes unused ones, and the first of two stores. Additions of 0 by
# __atomic_fetch_add() stay.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, OpenACC; ptxas and
# nvdisasm 13.5.37, sm_80.
# Why it matters: `volatile` keeps the loads of a benchmark, and does so with nvcc and clang. Here a
# repeated read is timed without its loads, and GCC's PTX does not show that.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 \
  nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
PATH="$work/packages/nvidia/cu13/bin:$work/usr/bin:$PATH"
gcc-12 --version | head -n 1
ptxas --version | grep release

cat >reads.c <<'C'
#define REGION(NAME, QUALIFIER, STATEMENTS) void NAME(QUALIFIER int *source, int *output) { \
  _Pragma("acc parallel num_gangs(1) copy(source[:1], output[:1])") { STATEMENTS } }
REGION(plain_reads, , int a = *source; int b = *source; *output = a + b;)
REGION(volatile_reads, volatile, int a = *source; int b = *source; *output = a + b;)
REGION(volatile_unused, volatile, *source; *source;)
REGION(volatile_writes, volatile, *source = 1; *source = 2;)
REGION(atomic_reads, , int a; int b; _Pragma("acc atomic read") a = *source;
       _Pragma("acc atomic read") b = *source; *output = a + b;)
REGION(atomic_adds, , int a = __atomic_fetch_add(source, 0, __ATOMIC_RELAXED);
       int b = __atomic_fetch_add(source, 0, __ATOMIC_RELAXED); *output = a + b;)
int main(void) { return 0; }
C
gcc-12 -O2 -fopenacc -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" reads.c -o reads
nvptx-none-as -o reads.ptx reads.xnvptx-none.mkoffload.s
ptxas -arch=sm_80 reads.ptx -o reads.cubin
nvdisasm -c reads.cubin >reads.sass
# list_accesses: the loads, stores and atomics, but for the 64-bit loads of the two pointers
list_accesses() { grep -oE '\b(ld|st|atom|LD|ST|ATOM)\.[A-Za-z0-9.]+' | grep -v 64 | xargs; }
for name in plain_reads volatile_reads volatile_unused volatile_writes atomic_reads atomic_adds; do
  ptx=$(sed -n "/^\.entry $name.*)$/,/^}/p" reads.xnvptx-none.mkoffload.s | list_accesses)
  code=$(sed -n "/^\.text\.$name/,/EXIT/p" reads.sass | list_accesses)
  echo "$name: $ptx -> ${code:-none}"
done | tee seen

expected='plain_reads: ld.u32 st.u32 -> LD.E ST.E
volatile_reads: ld.u32 ld.u32 st.u32 -> LD.E ST.E
volatile_unused: ld.u32 ld.u32 -> none
volatile_writes: st.u32 st.u32 -> ST.E
atomic_reads: ld.u32 ld.u32 st.u32 -> LD.E ST.E
atomic_adds: atom.add.u32 atom.add.u32 st.u32 -> ATOM.E.ADD.STRONG.GPU ATOM.E.ADD.STRONG.GPU ST.E'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
