#!/usr/bin/env bash
# Guess, written after the first sign: the selective scan of Mamba reads a row of 3072 bfloat16 as one of 4096, with 16 bytes
# a thread. Both are divisible by 8.
# What happens: vectors are used only if the length is divisible by what a block scans at once, 2048 elements for more than
# 1024. Otherwise each load and each store of the whole row has one element: 2 bytes a lane. 80 loads and 32 stores stand
# for 10 and 4, and as many in shared memory. Of float32 80 stand for 20, and registers are spilled.
# Version: mamba-ssm 2.3.2.post1, its kernel of 128 threads and 16 elements a thread, headers of PyTorch 2.15.0, nvcc and
# nvdisasm 13.5.37, sm_90. Seen on 1 December 2026.
# Why it matters: 8 times the requests for a length of 3072, 5000 or 2049. A benchmark of powers of two does not show it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
# PyTorch's headers are read out of its wheel on the index, and Mamba's source package is not built.
python3 - <<'PYTHON'
import io
import re
import tarfile
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


def find_link(project, name):
    (link,) = re.findall(f'href="([^"#]*/{name})', urlopen(f"https://pypi.org/simple/{project}/").read().decode())
    return link


with tarfile.open(fileobj=io.BytesIO(urlopen(find_link("mamba-ssm", r"mamba_ssm-2\.3\.2\.post1\.tar\.gz")).read())) as files:
    files.extractall(".", [file for file in files if "/selective_scan/" in file.name], filter="data")
with ZipFile(io.BufferedReader(RemoteFile(find_link("torch", r"torch-2\.15\.0-cp313-cp313-manylinux_2_28_x86_64\.whl")), 1 << 20)) as files:
    folders = ("torch/include/c10/", "torch/include/torch/headeronly/")
    files.extractall(".", [name for name in files.namelist() if name.startswith(folders)])
PYTHON
echo "mamba-ssm 2.3.2.post1, $(nvcc --version | grep release)"
grep -o 'params.seqlen % (kNThreads \* kNItems) == 0, kIsEvenLen' mamba_ssm-2.3.2.post1/csrc/selective_scan/selective_scan_fwd_kernel.cuh

cat >scan.cu <<'CUDA'
#include "selective_scan_fwd_kernel.cuh"
template __global__ void selective_scan_fwd_kernel<
  Selective_Scan_fwd_kernel_traits<128, 16, 1, EVEN, true, true, true, NUMBER, float>>(SSMParamsBase);
CUDA
for number in float at::Half at::BFloat16; do
  for even in true false; do
    nvcc -cubin -arch=sm_90 -std=c++20 -w --use_fast_math --expt-relaxed-constexpr --expt-extended-lambda "-DNUMBER=$number" \
      "-DEVEN=$even" -I mamba_ssm-2.3.2.post1/csrc/selective_scan -I torch/include -I packages/nvidia/cu13/include/cccl \
      scan.cu -o scan.cubin
    echo "$number, length divisible by 2048 $even: $(nvdisasm -c scan.cubin | grep -oE '\<(LDG|STG|STL)[.A-Z0-9]*' | LC_ALL=C sort | uniq -c | xargs)"
  done
done | tee seen

expected='float, length divisible by 2048 true: 3 LDG.E 20 LDG.E.128 8 STG.E.128 1 STG.E.64
float, length divisible by 2048 false: 83 LDG.E 32 STG.E 1 STG.E.64 11 STL
at::Half, length divisible by 2048 true: 3 LDG.E 10 LDG.E.128 4 STG.E.128 1 STG.E.64
at::Half, length divisible by 2048 false: 3 LDG.E 80 LDG.E.U16 1 STG.E.64 32 STG.E.U16
at::BFloat16, length divisible by 2048 true: 3 LDG.E 10 LDG.E.128 4 STG.E.128 1 STG.E.64
at::BFloat16, length divisible by 2048 false: 3 LDG.E 80 LDG.E.U16 1 STG.E.64 32 STG.E.U16'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
