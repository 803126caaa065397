#!/usr/bin/env bash
# Guess: smsp__inst_executed_op_global_ld and smsp__sass_inst_executed_op_global_ld count the same, in two ways: all
# loads of global memory. So do the two of shared memory.
# What happens: by their descriptions the former counts LDG alone, the latter generic loads, LD, too. Those of shared
# memory count LDS, or LDS and LD. Stores are alike, and asynchronous copies (LDGSTS) are in none of them.
# Version: CUPTI 13.4.92 (nvidia-cuda-cupti), whose libnvperf_host describes each chip's metrics without a GPU.
# Why it matters: where code reads by generic addresses, as slices in Numba and cuda::atomic_ref do, the one counts no
# load. Loads per thread, or sectors per load, that are made of it are of another set of instructions.
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
for chip in ["GA100", "GH100", "GB100", "GB202"]:
    counters = describe_counters(chip.encode())
    print(f"{chip}:")
    for access in ["global_ld", "global_st", "shared_ld", "shared_st"]:
        plain, sass = (counters[f"smsp__{prefix}inst_executed_op_{access}"].split(": ")[1] for prefix in ("", "sass_"))
        print(f"  {access}: {plain}; with sass_: {sass}")
    print("  generic_ld:", counters["smsp__inst_executed_op_generic_ld"].split(": ")[1])
PYTHON
{
  echo "nvidia-cuda-cupti $(python3 -m pip list --path "$work/packages" 2>/dev/null | awk '/cupti/ { print $2 }')"
  python3 "$work/metrics.py" "$work/packages"
} | tee "$work/seen"

expected='nvidia-cuda-cupti 13.4.92
GA100:
  global_ld: LDG; with sass_: LDG, LD
  global_st: STG; with sass_: STG, ST
  shared_ld: LDS; with sass_: LDS, LD
  shared_st: STS; with sass_: STS, ST
  generic_ld: LD
GH100:
  global_ld: LDG; with sass_: LDG, LD
  global_st: STG; with sass_: STG, ST
  shared_ld: LDS; with sass_: LDS, LD
  shared_st: STS; with sass_: STS, ST
  generic_ld: LD
GB100:
  global_ld: LDG; with sass_: LDG, LD
  global_st: STG; with sass_: STG, ST
  shared_ld: LDS; with sass_: LDS, LD
  shared_st: STS; with sass_: STS, ST
  generic_ld: LD
GB202:
  global_ld: LDG; with sass_: LDG, LD
  global_st: STG; with sass_: STG, ST
  shared_ld: LDS; with sass_: LDS, LD
  shared_st: STS; with sass_: STS, ST
  generic_ld: LD'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
