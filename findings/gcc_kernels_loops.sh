#!/usr/bin/env bash
# Guess: `acc kernels loop independent gang vector` spreads a loop over gangs and lanes, as `acc
# parallel loop` does. Neighbouring lanes load neighbours.
# What happens: lane 0 of one gang does the whole loop, element by element, and 31 lanes wait.
# Neither -Wall nor -Wextra nor -Wopenacc-parallelism warns. Only -fopt-info-omp says "seq".
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, sm_80.
# Why it matters: each request asks for 4 bytes of a sector of 32, and one warp makes all requests.
# Counters then tell of a directive that was dropped, not of how the array is laid out.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 \
  nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
PATH="$work/usr/bin:$PATH"
gcc-12 --version | head -n 1

cat >copies.c <<'C'
#define PRAGMA(TEXT) _Pragma(#TEXT)
#define COPY(NAME, DIRECTIVE) \
  void NAME(float *restrict output, const float *restrict source, int n) { \
    PRAGMA(DIRECTIVE copyout(output[:n]) copyin(source[:n])) \
    for (int i = 0; i < n; i++) output[i] = source[i]; }
COPY(parallel_loop, acc parallel loop)
COPY(kernels_loop, acc kernels loop)
COPY(kernels_independent, acc kernels loop independent)
COPY(kernels_gang_vector, acc kernels loop independent gang vector)
int main(void) { return 0; }
C

gcc-12 -O2 -fopenacc -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -Wall -Wextra -Wopenacc-parallelism -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" \
  -B "$work/usr/bin/" copies.c -o copies 2>&1 | tee warnings
# Of gangs 0 leaves their number to the run time.
{
  echo "warnings: $(grep -c . warnings)"
  awk '/^\.entry .*\)$/ { sub(/\$.*/, ""); name = $2 }
    /setp\.ne\.u32.*%x, 0;/ { lanes = "lane 0 alone" }
    /mov\.u32\t%r[0-9]*, %tid\.x;/ { lanes = "each lane its own" }
    /\tld\.f32/ { loop = 1 }
    loop && /add\.u64/ { loop = 0; print name ": " lanes "; next load " $NF " bytes on" }
    /FUNC_MAP/ { print $2 " gangs " $3 }' copies.xnvptx-none.mkoffload.s |
    sed 's/; bytes/ bytes/; s/[$]_omp_fn[$]0",/:/; s/^"//; s/,$//'
} | tee seen

expected='warnings: 0
parallel_loop: each lane its own; next load 128 bytes on
kernels_loop: lane 0 alone; next load 4 bytes on
kernels_independent: lane 0 alone; next load 4 bytes on
kernels_gang_vector: lane 0 alone; next load 4 bytes on
parallel_loop: gangs 0
kernels_loop: gangs 0x1
kernels_independent: gangs 0x1
kernels_gang_vector: gangs 0x1'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
