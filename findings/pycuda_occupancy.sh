#!/usr/bin/env bash
# Guess: pycuda.tools.OccupancyRecord says "how many thread blocks execute on each multiprocessor" of the device, as its
# documentation has it. CUDA's own formula says the same.
# What happens: its limits are those of old devices: 8 blocks, 64 warps and, as shared memory of a multiprocessor, what
# one block may have without opting in: 48 KiB. On an H100 blocks of 128 threads have an occupancy of 0.5 where 1 is
# right, and with 16 KiB of shared memory 3 blocks fit where 13 do. A block of 64 KiB is refused with "too much smem". On
# an RTX 5090, which has 48 warps, 4 blocks of 512 threads fit where 3 do.
# Version: PyCUDA 2026.1, its Python code with a device's attributes, and cuda_occupancy.h of CUDA 13.5.37, both on the
# CPU. Seen on 30 November 2026.
# Why it matters: who tunes block sizes or tiles by it chooses 4 times too few bytes of shared memory, or explains a slow
# kernel by an occupancy that it does not have.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --target packages numpy==2.3.5 pytools==2025.2.5 mako==1.3.10 siphash24==1.8
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-runtime==13.5.37
# Building PyCUDA needs CUDA, so the link of its sources comes from the index.
python3 - <<'PYTHON'
import re
import tarfile
from urllib.request import urlopen

index = urlopen("https://pypi.org/simple/pycuda/").read().decode()
(link,) = re.findall(r'href="([^"#]*/pycuda-2026\.1\.tar\.gz)', index)
with tarfile.open(fileobj=urlopen(link), mode="r|gz") as archive:
    archive.extractall(filter="data")
PYTHON

cat >formula.cpp <<'CPP'
#include <cstdio>
#include <cstdlib>
#include <cuda_occupancy.h>
// Arguments: compute capability, warps and KiB of shared memory of a multiprocessor, threads, bytes, registers.
int main(int, char **texts) {
  auto number = [&](int i) { return std::atoi(texts[i]); };
  cudaOccDeviceProp device;
  device.computeMajor = number(1) / 10, device.computeMinor = number(1) % 10;
  device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = 32 * number(2), device.warpSize = 32;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536, device.numSms = 100;
  device.sharedMemPerBlock = 48 << 10, device.sharedMemPerMultiprocessor = number(3) << 10;
  device.sharedMemPerBlockOptin = (number(3) - 1) << 10, device.reservedSharedMemPerBlock = 1024;
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = 1024, kernel.numRegs = number(6), kernel.sharedSizeBytes = 0;
  kernel.partitionedGCConfig = PARTITIONED_GC_OFF, kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = (number(3) - 1) << 10, kernel.numBlockBarriers = 1;
  cudaOccDeviceState state;
  cudaOccResult result;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, number(4), number(5))) return 1;
  const int warps = result.activeBlocksPerMultiprocessor * number(4) / 32;
  std::printf("CUDA %d blocks, %.2f\n", result.activeBlocksPerMultiprocessor, double(warps) / number(2));
}
CPP
g++ -std=c++17 -w -I packages/nvidia/cu13/include formula.cpp -o formula

cat >compare.py <<'PYTHON'
import subprocess
import sys
from unittest.mock import MagicMock

sys.modules["pycuda._driver"] = MagicMock()
sys.modules["pycuda.driver"] = driver = MagicMock()
from pycuda.tools import DeviceData, OccupancyRecord

attributes = {"MAX_THREADS_PER_BLOCK": 1024, "WARP_SIZE": 32, "MAX_REGISTERS_PER_BLOCK": 65536, "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10}
for attribute in attributes:
    setattr(driver.device_attribute, attribute, attribute)

def compare(gpu, capability, warps, kib, threads, shared, registers):
    device = MagicMock(get_attribute=attributes.get, compute_capability=lambda: divmod(capability, 10))
    try:
        record = OccupancyRecord(DeviceData(device), threads, shared, registers)
        seen = f"PyCUDA {record.tb_per_mp} blocks, {record.occupancy:.2f}, limited by {record.limited_by}"
    except ValueError as error:
        seen = f"PyCUDA {error}"
    formula = subprocess.check_output(["./formula", *map(str, [capability, warps, kib, threads, shared, registers])], text=True)
    print(f"{gpu}, {threads} threads, {shared >> 10} KiB, {registers} registers: {seen}; {formula.strip()}")

for gpu in [("A100", 80, 64, 164), ("H100", 90, 64, 228), ("RTX 5090", 120, 48, 100)]:
    compare(*gpu, 128, 0, 32)
    compare(*gpu, 128, 16 << 10, 32)
    compare(*gpu, 256, 64 << 10, 32)
    compare(*gpu, 512, 0, 32)
PYTHON
sed -n 's/^Version: /PyCUDA /p' pycuda-2026.1/PKG-INFO
PYTHONPATH="packages:pycuda-2026.1" python3 compare.py | tee seen

expected='A100, 128 threads, 0 KiB, 32 registers: PyCUDA 8 blocks, 0.50, limited by device; CUDA 16 blocks, 1.00
A100, 128 threads, 16 KiB, 32 registers: PyCUDA 3 blocks, 0.19, limited by smem; CUDA 9 blocks, 0.56
A100, 256 threads, 64 KiB, 32 registers: PyCUDA too much smem; CUDA 2 blocks, 0.25
A100, 512 threads, 0 KiB, 32 registers: PyCUDA 4 blocks, 1.00, limited by regs; CUDA 4 blocks, 1.00
H100, 128 threads, 0 KiB, 32 registers: PyCUDA 8 blocks, 0.50, limited by device; CUDA 16 blocks, 1.00
H100, 128 threads, 16 KiB, 32 registers: PyCUDA 3 blocks, 0.19, limited by smem; CUDA 13 blocks, 0.81
H100, 256 threads, 64 KiB, 32 registers: PyCUDA too much smem; CUDA 3 blocks, 0.38
H100, 512 threads, 0 KiB, 32 registers: PyCUDA 4 blocks, 1.00, limited by regs; CUDA 4 blocks, 1.00
RTX 5090, 128 threads, 0 KiB, 32 registers: PyCUDA 8 blocks, 0.50, limited by device; CUDA 12 blocks, 1.00
RTX 5090, 128 threads, 16 KiB, 32 registers: PyCUDA 3 blocks, 0.19, limited by smem; CUDA 5 blocks, 0.42
RTX 5090, 256 threads, 64 KiB, 32 registers: PyCUDA too much smem; CUDA 1 blocks, 0.17
RTX 5090, 512 threads, 0 KiB, 32 registers: PyCUDA 4 blocks, 1.00, limited by regs; CUDA 3 blocks, 1.00'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
