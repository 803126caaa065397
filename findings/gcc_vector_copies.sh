#!/usr/bin/env bash
# Guess: a vector of four floats, `vector_size(16)`, is copied by one or two loads and stores in a
# loop that GCC offloads. It goes through registers, as a struct does.
# What happens: it goes through local memory, too, and ptxas does not remove that. A copy stores 16
# bytes there. A product loads four of 4 bytes, stores four there, and loads two of 8 from there.
# Before the loop all lanes load and store the frame once more, to share lane 0's.
# Version: GCC 12.2.0-14+deb12u1 with Debian 12's offloading compiler for nvptx, OpenACC; ptxas and
# nvdisasm 13.5.37, sm_80.
# Why it matters: vector types are written for fewer accesses. A product of vectors makes 12, half
# of them of local memory. One of structs makes 8. All are LD and ST, so none shows which it is.
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

cat >copies.c <<'C'
typedef float vector __attribute__((vector_size(16)));
typedef struct { float x, y, z, w; } __attribute__((aligned(16))) aligned;
#define LOOP(NAME, TYPE, STATEMENT) \
  void NAME(TYPE *restrict output, const TYPE *restrict source, int n) { \
    _Pragma("acc parallel loop copyout(output[:n]) copyin(source[:n])") \
    for (int i = 0; i < n; i++) { TYPE value = source[i]; STATEMENT; output[i] = value; } }
LOOP(struct_copy, aligned, )
LOOP(vector_copy, vector, )
LOOP(struct_product, aligned, value.x *= 2; value.y *= 2; value.z *= 2; value.w *= 2)
LOOP(vector_product, vector, value *= 2)
int main(void) { return 0; }
C
gcc-12 -O2 -fopenacc -foffload=nvptx-none -foffload-options=-misa=sm_80 -save-temps -no-pie \
  -B "$work/usr/lib/gcc/x86_64-linux-gnu/12/" -B "$work/usr/bin/" copies.c -o copies
nvptx-none-as -o copies.ptx copies.xnvptx-none.mkoffload.s
ptxas -v -arch=sm_80 copies.ptx -o copies.cubin >ptxas.txt 2>&1
for name in struct_copy vector_copy struct_product vector_product; do
  # Besides those of the loop there are an LD.E of the length and three LD.E.64 of pointers.
  echo "$name: $(sed -n "/'$name/,/stack/s/ bytes stack.*//p" ptxas.txt | xargs) bytes of frame," \
    "$(nvdisasm -c copies.cubin | sed -n "/^\.text\.$name/,/^\.text/p" |
      grep -oE '\b(LD|ST)[SLG]?\.[A-Z0-9.]*' | LC_ALL=C sort | uniq -c | xargs)"
done | tee seen

expected='struct_copy: 0 bytes of frame, 5 LD.E 3 LD.E.64 4 ST.E
vector_copy: 16 bytes of frame, 1 LD.E 6 LD.E.64 5 ST.E.64
struct_product: 0 bytes of frame, 5 LD.E 3 LD.E.64 4 ST.E
vector_product: 32 bytes of frame, 5 LD.E 6 LD.E.64 4 ST.E 3 ST.E.64'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
