#!/usr/bin/env bash
# Guess: `#pragma acc kernels loop independent` runs a loop on the whole GPU, with neighbours in neighbouring lanes, as
# `parallel loop` does: the programmer states that iterations are independent.
# What happens: one block of one warp is launched, and lane 0 alone runs all iterations. So it does for `kernels` and
# for `kernels loop gang vector` with num_gangs(64). -fopt-info-omp says "seq". With the parameter
# openacc-kernels=decompose, `independent` helps, and `gang vector` without it does not.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, sm_80. Seen on 30 November 2026.
# Why it matters: 32 times the requests, from one of some 100,000 threads. Nothing warns, and the numbers are right.
# `kernels` is how many OpenACC programs state their loops.
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
    PRAGMA(acc DIRECTIVE copyout(output[:n]) copyin(source[:n])) \
    for (int i = 0; i < n; i++) output[i] = source[i] + 1; }
INCREMENT(parallel, parallel loop)
INCREMENT(kernels, kernels)
INCREMENT(independent, kernels loop independent)
INCREMENT(gangs, kernels loop gang vector num_gangs(64) vector_length(32))
int main(void) { return 0; }
C
for parameter in parloops decompose; do
  gcc-12 -O2 -fopenacc --param=openacc-kernels=$parameter -fopt-info-omp-optimized=notes.$parameter -foffload=nvptx-none \
    -foffload-options=-misa=sm_80 -save-temps -no-pie \
    -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" increments.c -o increments
  # The numbers of gangs, workers and lanes to launch, where 0 is as many as suit the GPU, and GCC's note of the loop
  paste -d ' ' <(sed -n 's/.*FUNC_MAP "\(\w*\).*", /\1 /p' increments.xnvptx-none.mkoffload.s) \
    <(sed -n 's/.*c:\([0-9]*\):.*: optimized: assigned OpenACC \(.*\) loop parallelism/\1 \2/p' notes.$parameter | sort -u | cut -d ' ' -f 2-) |
    sed "s/^/$parameter: /"
done | tee seen
gcc-12 -O2 -fopenacc -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" increments.c -o increments
echo 'all lanes but 0 jump over the accesses of independent:' | tee -a seen
sed -n '/^\.entry independent/,/^}/p' increments.xnvptx-none.mkoffload.s |
  grep -E 'tid\.x|setp\.ne\.u32.*%x|@%r42|(ld|st)\.f32|add\.u64.*4;' | xargs -n 99 | tee -a seen

expected='parloops: parallel 0, 0x1, 0x20 gang vector
parloops: kernels 0x1, 0x1, 0x20 seq
parloops: independent 0x1, 0x1, 0x20 seq
parloops: gangs 0x1, 0x1, 0x20 seq
decompose: parallel 0, 0x1, 0x20 gang vector
decompose: kernels 0x1, 0x1, 0x20 seq
decompose: independent 0, 0x1, 0x20 gang vector
decompose: gangs 0x1, 0x1, 0x20 seq
all lanes but 0 jump over the accesses of independent:
mov.u32 %x, %tid.x; setp.ne.u32 %r42, %x, 0; @%r42 bra $L20; @%r42 bra $L19; @%r42 bra $L18; ld.f32 %r40, [%r30]; st.f32 [%r26], %r39; add.u64 %r30, %r30, 4; add.u64 %r26, %r26, 4;'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
