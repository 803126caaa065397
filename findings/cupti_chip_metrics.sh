#!/usr/bin/env bash
# Guess: the bytes read from DRAM have one name on data-centre and consumer chips of a generation. So have L2's sectors
# of device memory. A metric that two chips have counts the same on both.
# What happens: dram__bytes_read is dram__bytes_op_read on GB202 and GR100, and integrated chips have neither. L2
# sectors by aperture are on GB202, not on GB100. By their descriptions, shared-memory bank conflicts include those of
# tensor cores on GH100 alone. Sectors of the LSU pipe include distributed shared memory from GH100 on.
# Version: CUPTI 13.4.92 (nvidia-cuda-cupti), whose libnvperf_host describes each chip's metrics without a GPU.
# Why it matters: a list of metrics for a B200 (GB100) does not fit an RTX 5090 (GB202). Bank conflicts of a matrix
# product on a Hopper and on a Blackwell chip are not of the same instructions.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-cupti==13.4.92

cat >"$work/metrics.py" <<'PYTHON'
import ctypes
import sys
from ctypes import POINTER, c_char_p, c_size_t, c_uint8, c_uint32, c_void_p

library = ctypes.CDLL(sys.argv[1] + "/nvidia/cu13/lib/libnvperf_host.so")

def call(function, fields, **values):
    """Call a function with a structure of parameters; return the structure, which holds the results, too."""
    layout = [("structSize", c_size_t), ("pPriv", c_void_p), *fields.items()]
    structure = type(function, (ctypes.Structure,), {"_fields_": layout})
    last = getattr(structure, layout[-1][0])
    parameters = structure(structSize=last.offset + last.size, **values)
    status = getattr(library, function)(ctypes.byref(parameters))
    assert status == 0, f"{function}: {status}"
    return parameters

def describe_counters(chip):
    """Return the description of each counter of a chip, by name."""
    fields = {"chip": c_char_p, "image": c_void_p, "size": c_size_t}
    size = call("NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", fields, chip=chip).size
    buffers.append((c_uint8 * size)())
    fields = {"buffer": c_void_p, "size": c_size_t, "chip": c_char_p, "image": c_void_p, "data": c_void_p}
    fields |= {"data_size": c_size_t, "evaluator": c_void_p}
    buffer = ctypes.addressof(buffers[-1])
    evaluator = call("NVPW_CUDA_MetricsEvaluator_Initialize", fields, buffer=buffer, size=size, chip=chip).evaluator
    fields = {"evaluator": c_void_p, "type": c_uint8, "names": c_void_p, "starts": POINTER(c_size_t), "count": c_size_t}
    found = call("NVPW_MetricsEvaluator_GetMetricNames", fields, evaluator=evaluator)
    names = [ctypes.string_at(found.names + found.starts[index]).decode() for index in range(found.count)]
    fields = {"evaluator": c_void_p, "index": c_size_t, "text": c_char_p, "unit": c_uint32}
    texts = (call("NVPW_MetricsEvaluator_GetCounterProperties", fields, evaluator=evaluator, index=index).text
             for index in range(found.count))
    return dict(zip(names, ((text or b"").decode() for text in texts), strict=True))

buffers = []
call("NVPW_InitializeHost", {})
NAMES = ["dram__bytes_read", "dram__bytes_op_read", "lts__t_sectors_aperture_device", "lts__t_sectors_op_read"]
for chip in ["GA100", "AD102", "GH100", "GB100", "GB202", "GB10B", "GB20B", "GR100"]:
    counters = describe_counters(chip.encode())
    print(f"{chip}:", *(name for name in NAMES if name in counters))
    conflicts = counters["l1tex__data_bank_conflicts_pipe_lsu_mem_shared"]
    sectors = counters["l1tex__t_sectors_pipe_lsu"]
    print("  conflicts of HGMMA:", "HGMMA" in conflicts, " sectors of distributed shared:", "distributed" in sectors)
PYTHON
{
  echo "nvidia-cuda-cupti $(python3 -m pip list --path "$work/packages" 2>/dev/null | awk '/cupti/ { print $2 }')"
  python3 "$work/metrics.py" "$work/packages"
} | tee "$work/seen"

expected='nvidia-cuda-cupti 13.4.92
GA100: dram__bytes_read lts__t_sectors_aperture_device lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: False
AD102: dram__bytes_read lts__t_sectors_aperture_device lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: False
GH100: dram__bytes_read lts__t_sectors_aperture_device lts__t_sectors_op_read
  conflicts of HGMMA: True  sectors of distributed shared: True
GB100: dram__bytes_read lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: True
GB202: dram__bytes_op_read lts__t_sectors_aperture_device lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: True
GB10B: lts__t_sectors_aperture_device lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: True
GB20B: lts__t_sectors_aperture_device lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: True
GR100: dram__bytes_op_read lts__t_sectors_op_read
  conflicts of HGMMA: False  sectors of distributed shared: True'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
