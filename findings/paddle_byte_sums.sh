#!/usr/bin/env bash
# Guess: CudaAtomicAdd() of an int8_t in Paddle's gpu_primitives.h changes that element alone, and returns its old value,
# as atomicAdd() of an int does.
# What happens: a sum below 0 overwrites its neighbours up to the end of the word of 4 bytes: they become -1. The atomic
# is a compare-and-swap of the word, which puts the sum there with the bits of its sign. int16_t and uint8_t are masked.
# Of all three the value returned is that of the first element in the word, whichever is added to.
# Version: PaddlePaddle 3.3.1, its gpu_primitives.h executed on the CPU by GCC. Seen on 30 November 2026.
# Why it matters: Paddle installs the header for one's own kernels, and its scatter.cu.h adds with it. Who keeps sums or
# votes as int8 to move fewer bytes gets wrong ones, without an error.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Headers are read out of the wheel on the index, which has 185 MB.
python3 - <<'PYTHON'
import io
import re
from urllib.request import Request, urlopen
from zipfile import ZipFile


class RemoteFile(io.RawIOBase):
    def __init__(self, link):
        self.link, self.place = link, 0
        self.size = int(urlopen(Request(link, method="HEAD")).headers["Content-Length"])

    def readable(self):
        return True

    seekable = readable

    def seek(self, offset, whence=0):
        self.place = (0, self.place, self.size)[whence] + offset
        return self.place

    def readinto(self, buffer):
        end = min(self.place + len(buffer), self.size)
        if self.place >= end:
            return 0
        read = urlopen(Request(self.link, headers={"Range": f"bytes={self.place}-{end - 1}"})).read()
        buffer[: len(read)] = read
        self.place += len(read)
        return len(read)


index = urlopen("https://pypi.org/simple/paddlepaddle/").read().decode()
(link,) = re.findall(r'href="([^"#]*/paddlepaddle-3\.3\.1-cp310-cp310-manylinux1_x86_64\.whl)', index)
with ZipFile(io.BufferedReader(RemoteFile(link), 1 << 20)) as files:
    wanted = ("common/", "phi/common/", "phi/backends/gpu/gpu_primitives.h")
    wanted = tuple(f"paddle/include/paddle/{name}" for name in wanted)
    files.extractall(".", [name for name in files.namelist() if name.startswith(wanted)])
PYTHON
echo "PaddlePaddle 3.3.1, $(g++ --version | head -1)"

cat >run.cpp <<'CPP'
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#define __device__
#define __forceinline__ inline
using std::max, std::min;
template <class To, class From> To copy_bits(From value) { To to; std::memcpy(&to, &value, sizeof to); return to; }
int __float_as_int(float value) { return copy_bits<int>(value); }
float __int_as_float(int value) { return copy_bits<float>(value); }
unsigned long long __double_as_longlong(double value) { return copy_bits<unsigned long long>(value); }
double __longlong_as_double(unsigned long long value) { return copy_bits<double>(value); }
// CUDA's atomics, one thread after the other, so that each compare-and-swap succeeds.
template <class Number> Number atomicAdd(Number *address, Number value) { return (*address += value) - value; }
template <class Number> Number atomicMax(Number *address, Number value) { return std::exchange(*address, max(*address, value)); }
template <class Number> Number atomicMin(Number *address, Number value) { return std::exchange(*address, min(*address, value)); }
template <class Word, class Value> Word atomicCAS(Word *address, Word expected, Value value) {
  const Word old = *address;
  if (old == expected) *address = value;
  return old;
}
#include "paddle/phi/backends/gpu/gpu_primitives.h"

template <class Number> void add(const char *type, int value, int place) {
  alignas(4) Number elements[4] = {10, 20, 30, 40};
  const Number old = phi::CudaAtomicAdd(elements + place, Number(value));
  std::printf("%s, %d added to element %d of 10 20 30 40:", type, value, place);
  for (Number element : elements) std::printf(" %d", int(element));
  std::printf(", returns %d\n", int(old));
}
int main() {
  add<int32_t>("int32", -50, 1);
  for (int place = 0; place < 4; ++place) add<int8_t>("int8", -50, place);
  add<int8_t>("int8", 50, 1);
  add<int16_t>("int16", -50, 1);
  add<uint8_t>("uint8", 50, 1);
}
CPP
g++ -std=c++17 -w -I paddle/include run.cpp -o run
./run | tee seen

expected='int32, -50 added to element 1 of 10 20 30 40: 10 -30 30 40, returns 20
int8, -50 added to element 0 of 10 20 30 40: -40 -1 -1 -1, returns 10
int8, -50 added to element 1 of 10 20 30 40: 10 -30 -1 -1, returns 10
int8, -50 added to element 2 of 10 20 30 40: 10 20 -20 -1, returns 10
int8, -50 added to element 3 of 10 20 30 40: 10 20 30 -10, returns 10
int8, 50 added to element 1 of 10 20 30 40: 10 70 30 40, returns 10
int16, -50 added to element 1 of 10 20 30 40: 10 -30 30 40, returns 10
uint8, 50 added to element 1 of 10 20 30 40: 10 70 30 40, returns 10'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
