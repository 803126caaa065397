#!/usr/bin/env bash
# Guess, written after reading the source: causal_conv1d_update(), the convolution of one token in Mamba's decoding, reads
# the state of a channel at once, or channels that are neighbours with neighbouring lanes.
# What happens: a lane has a channel and reads its three last elements one by one. The state is (batch, channels, 4), so
# lanes lie 4 elements apart: 16 sectors for 32 floats where 4 would do, 8 for 32 bfloat16 where 2 would; three loads and
# four stores each. Inputs and outputs are neighbours.
# Version: causal-conv1d 1.7.0. Its kernel is run on the CPU, thread by thread, with element types that note their
# addresses; a sector has 32 bytes. Seen on 1 December 2026.
# Why it matters: the update moves memory and hardly computes: 4 times the sectors of its state. A state that is contiguous
# along channels, seen through transpose(), is read by neighbours, as its strides are parameters.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - <<'PYTHON'
import io
import re
import tarfile
from urllib.request import urlopen

index = urlopen("https://pypi.org/simple/causal-conv1d/").read().decode()
(link,) = re.findall(r'href="([^"#]*/causal_conv1d-1\.7\.0\.tar\.gz)', index)
with tarfile.open(fileobj=io.BytesIO(urlopen(link).read())) as files:
    files.extractall(".", [file for file in files if "/csrc/" in file.name], filter="data")
PYTHON
echo "causal-conv1d 1.7.0" | tee seen
source=causal_conv1d-1.7.0/csrc
sed -n '/^template<int kNThreads_/,/^};/p; /^template<typename Ktraits, bool/,/^}/p' "$source/causal_conv1d_update.cu" >kernel.hpp

cat >run.cpp <<'CPP'
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <type_traits>
#include <vector>
#include "causal_conv1d.h"
#define __global__
#define __launch_bounds__(threads)
struct { int x, y; } blockIdx, threadIdx;
struct Access { char kind; uintptr_t address; };
std::vector<Access> accesses;
uintptr_t first_state, last_state;
template <class Bits> struct Number {  // A load is a copy from an array, a store an assignment to one.
  Bits bits = 0;
  Number() = default;
  explicit Number(float) {}
  Number(const Number &other) { note('L', &other); }
  Number &operator=(const Number &other) { note('L', &other), note('S', this); return *this; }
  operator float() const { note('L', this); return 0; }
  static void note(char kind, const void *address) {
    const uintptr_t number = reinterpret_cast<uintptr_t>(address);
    if (first_state <= number && number < last_state) accesses.push_back({kind, number});
  }
};
#include "kernel.hpp"

template <class Element> void show(const char *type, const char *layout, int channel_stride, int element_stride) {
  alignas(256) static Element state[1024 * 4], x[1024], out[1024];
  static float weight[1024 * 4];
  first_state = reinterpret_cast<uintptr_t>(state), last_state = reinterpret_cast<uintptr_t>(state + 4096);
  ConvParamsBase params{};
  params.batch = 1, params.dim = 1024, params.seqlen = 1, params.width = 4, params.conv_state_len = 4;
  params.x_ptr = x, params.out_ptr = out, params.weight_ptr = weight, params.conv_state_ptr = state;
  params.x_c_stride = params.out_c_stride = 1, params.weight_c_stride = 4, params.weight_width_stride = 1;
  params.conv_state_c_stride = channel_stride, params.conv_state_l_stride = element_stride;
  std::vector<std::vector<Access>> lanes;
  for (threadIdx.x = 0; threadIdx.x < 32; ++threadIdx.x) {
    accesses.clear();
    causal_conv1d_update_kernel<Causal_conv1d_update_kernel_traits<64, 4, Element, float>, false>(params);
    lanes.push_back(accesses);
  }
  std::string text;
  for (size_t i = 0; i < lanes[0].size(); ++i) {
    std::set<uintptr_t> sectors;
    for (const auto &lane : lanes) sectors.insert(lane[i].address / 32);
    text += " " + std::string(1, lanes[0][i].kind) + std::to_string(sectors.size());
  }
  std::printf("%s, %s: sectors of each load and store of the state%s\n", type, layout, text.c_str());
}
int main() {
  show<Number<int32_t>>("float32", "(batch, channels, 4)", 4, 1);
  show<Number<int16_t>>("bfloat16", "(batch, channels, 4)", 4, 1);
  show<Number<int32_t>>("float32", "(batch, 4, channels) transposed", 1, 1024);
  show<Number<int16_t>>("bfloat16", "(batch, 4, channels) transposed", 1, 1024);
}
CPP
g++ -std=c++17 -w -I "$source" run.cpp -o run
./run | tee -a seen

expected='causal-conv1d 1.7.0
float32, (batch, channels, 4): sectors of each load and store of the state L16 S16 L16 S16 L16 S16 S16
bfloat16, (batch, channels, 4): sectors of each load and store of the state L8 S8 L8 S8 L8 S8 S8
float32, (batch, 4, channels) transposed: sectors of each load and store of the state L4 S4 L4 S4 L4 S4 S4
bfloat16, (batch, 4, channels) transposed: sectors of each load and store of the state L2 S2 L2 S2 L2 S2 S2'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
