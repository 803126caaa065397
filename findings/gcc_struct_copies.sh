#!/usr/bin/env bash
# Guess: in a loop that GCC offloads, a copy of a struct of 5 floats is 5 accesses of 4 bytes. One
# of 4 floats is four. The size decides, not how the members are declared.
# What happens: what takes more than four accesses is a call of memcpy() of GCC's C library, for
# each element. It copies single bytes below 32 bytes. From 32 on it copies 8 bytes at once, if both
# addresses are multiples of 8, and else bytes. So is a struct of 16 bytes that holds an array.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, OpenACC; ptxas and
# nvdisasm 13.5.37, sm_80.
# Why it matters: 5 floats are 20 loads of a byte, 20 bytes apart. Each request touches 20 sectors,
# 400 in all instead of 100. Of a struct of 9 floats every other lane copies bytes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$work/usr/bin:$PATH"
apt-get -qq -o APT::Sandbox::User=root download gcc-12-offload-nvptx=12.2.0-14+deb12u1 \
  nvptx-tools=0.20220610-1
for package in *.deb; do dpkg -x "$package" .; done
accelerator="$work/usr/lib/gcc/x86_64-linux-gnu/12/accel/nvptx-none"
gcc-12 --version | head -n 1

cat >copies.c <<'C'
#define COPY(NAME, MEMBERS) typedef struct { MEMBERS } NAME; \
  void copy_##NAME(NAME *restrict output, const NAME *restrict source, int n) { \
    _Pragma("acc parallel loop copyout(output[:n]) copyin(source[:n])") \
    for (int i = 0; i < n; i++) output[i] = source[i]; }
COPY(four_floats, float a; float b; float c; float d;)
COPY(array_and_float, float a[3]; float b;)
COPY(five_floats, float a; float b; float c; float d; float e;)
COPY(three_doubles, double a; double b; double c;)
COPY(four_doubles, double a; double b; double c; double d;)
int main(void) { return 0; }
C
gcc-12 -O2 -fopenacc -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "${accelerator%/accel*}/" -B "$work/usr/bin/" copies.c -o copies 2>log || { cat log; exit 1; }
sed 's/\.target.*/.target sm_80/; s/\.version.*/.version 7.0/' <(ar p "$accelerator/libc.a" \
  lib_a-memcpy.o) >memcpy.ptx
ptxas -c -arch=sm_80 memcpy.ptx -o memcpy.cubin
{
  awk '/^\.entry copy_.*\)$/ { sub(/\$.*/, ""); name = $2 }
    /\tst\.[a-z0-9]*\t/ { stores[name] = stores[name] " " $1 }
    /call.* memcpy/ { stores[name] = stores[name] " memcpy()" }
    /^}/ && name { print name ":" stores[name]; name = "" }' copies.xnvptx-none.mkoffload.s
  echo "memcpy(): $(nvdisasm -c memcpy.cubin | grep -oE '\b(LD|ST)\.E[.A-Z0-9]*' | sort -u | xargs)"
  echo "memcpy() tests: $(grep -oE '(setp.gt.u64|and.b64).*,(31|7);' memcpy.ptx |
    head -n 2 | xargs)"
} | tee seen

expected='copy_four_floats: st.u32 st.u32 st.u32 st.u32
copy_array_and_float: memcpy()
copy_five_floats: memcpy()
copy_three_doubles: st.u64 st.u64 st.u64
copy_four_doubles: memcpy()
memcpy(): LD.E.64 LD.E.U8 ST.E.64 ST.E.U8
memcpy() tests: setp.gt.u64 %r62,%r61,31; and.b64 %r65,%r64,7;'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
