#!/usr/bin/env bash
# Guess: `target teams distribute parallel for` gives neighbouring iterations to neighbouring lanes of a warp, as clang's
# offloading does. A warp's load of floats asks for 128 bytes.
# What happens: a thread of OpenMP is a warp. All 32 lanes load one element, add to it and store it, and the next turn
# takes the next element: no address depends on the lane. With `simd` after `parallel for`, or with `loop`, lanes take
# neighbours, and a turn takes 32 elements.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, sm_80. Seen on 30 November 2026.
# Why it matters: 32 times the requests and 8 times the sectors for the same bytes, by a word that other compilers ignore
# on a GPU. A profiler shows full warps and one sector a request, as of a broadcast, and nothing that is uncoalesced.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 \
  nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
PATH="$work/usr/bin:$PATH"
gcc-12 --version | head -n 1

cat >increments.c <<'C'
#define PRAGMA(TEXT) _Pragma(#TEXT)
#define INCREMENT(NAME, DIRECTIVE) \
  void NAME(float *restrict output, const float *restrict source, int n) { \
    PRAGMA(omp target DIRECTIVE map(from: output[:n]) map(to: source[:n])) \
    for (int i = 0; i < n; i++) output[i] = source[i] + 1; }
INCREMENT(parallel_for, teams distribute parallel for)
INCREMENT(parallel_for_chunks, teams distribute parallel for schedule(static, 1))
INCREMENT(parallel_for_simd, teams distribute parallel for simd)
INCREMENT(teams_loop, teams loop)
int main(void) { return 0; }
C
gcc-12 -O2 -fopenmp -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" increments.c -o increments
# The functions that load: whether they read a lane's number, and how far a turn moves the addresses. In chunks of one
# element, the number of threads is the distance.
awk '/^\.(visible |weak )*(func|entry)/ { name = $2; sub(/[$].*/, "", name); lane = "no lane"; step = "" }
    /%laneid|%tid\.x/ { lane = "laneid" }
    /ld\.f32/ { load = 1 }
    load && /add\.u64.*, [0-9]+;/ { step = $NF; sub(/;/, "", step) }
    /^}/ { if (load) print name ": " lane (step ? ", " step " bytes a turn" : ""); load = 0 }' \
  increments.xnvptx-none.mkoffload.s | tee seen

expected='parallel_for: no lane, 4 bytes a turn
parallel_for_chunks: no lane
parallel_for_simd: laneid, 128 bytes a turn
teams_loop: laneid, 128 bytes a turn'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
