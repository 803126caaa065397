#!/usr/bin/env bash
# Guess: the 32 lanes of a warp do neighbouring iterations of a loop under `target teams distribute
# parallel for`, as with clang, and their loads coalesce.
# What happens: GCC's OpenMP thread is a warp. All lanes do the same iteration and load the same
# element; the warp goes on to the next. Only with `simd` lanes have neighbours. `acc kernels loop
# independent gang vector` is one lane of one gang for the whole loop, without a warning.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, sm_80. Its manual
# tells of the warp at the option -muniform-simt.
# Why it matters: of the same source GCC makes 32 requests of a sector where clang makes one of 4.
# Counters then tell of a missing word in a directive, not of the array's layout.
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
    PRAGMA(DIRECTIVE) for (int i = 0; i < n; i++) output[i] = source[i]; }
#ifdef _OPENMP
#define MAPS map(from: output[:n]) map(to: source[:n])
COPY(omp_for, omp target teams distribute parallel for MAPS)
COPY(omp_for_simd, omp target teams distribute parallel for simd MAPS)
#else
#define MAPS copyout(output[:n]) copyin(source[:n])
COPY(acc_parallel, acc parallel loop MAPS)
COPY(acc_kernels, acc kernels loop independent gang vector MAPS)
#endif
int main(void) { return 0; }
C

for api in openmp openacc; do
  gcc-12 -O2 -Wall -f$api -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
    -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" copies.c -o $api
  # Of gangs 0 leaves their number to the run time.
  awk '/^\.(func|entry) (omp|acc)_.*\)$/ { sub(/\$.*/, ""); name = $2; lanes = "all lanes alike" }
    /setp\.ne\.u32.*%x, 0;/ { lanes = "lane 0 alone" }
    /mov\.u32\t%r[0-9]*, %(laneid|tid\.x);/ { lanes = "each lane its own" }
    /\tld\.f32/ { loop = 1 }
    loop && /add\.u64/ { loop = 0; print name ": " lanes "; next load " $NF " bytes on" }
    sub(/.*FUNC_MAP "acc_/, "acc_") { print $1 " gangs " $2 }' $api.xnvptx-none.mkoffload.s
done | sed 's/; bytes/ bytes/; s/[$]_omp_fn[$]0",/:/; s/,$//' | tee seen

expected='omp_for: all lanes alike; next load 4 bytes on
omp_for_simd: each lane its own; next load 128 bytes on
acc_parallel: each lane its own; next load 128 bytes on
acc_kernels: lane 0 alone; next load 4 bytes on
acc_parallel: gangs 0
acc_kernels: gangs 0x1'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
