"""Spills and local memory in the gate's counts."""

from __future__ import annotations

import pytest

from ptxcount.source.ptxas import list_machine_accesses
from tests.ptxcount.sources import compile_to_ptx


def test_register_limit_makes_ptxas_spill() -> None:
    names = [f"a{n}" for n in range(48)]
    loads = "".join(f"float {name} = x[{n} * 32]; " for n, name in enumerate(names))
    stores = "".join(f"x[{n} * 32 + 1] = {name}; " for n, name in enumerate(reversed(names)))
    ptx = compile_to_ptx(f'extern "C" __global__ void k(float* x) {{ {loads}__syncthreads(); {stores}}}')
    free, limited = (list_machine_accesses(ptx, "k", flags, "sm_90") for flags in ("", "--maxrregcount=24"))
    frames = [(access["space"], access["kind"], access["bytes"]) for access in free]
    assert frames == [("stack", "frame", 0), ("spill", "store", 0), ("spill", "load", 0)]
    assert limited[1]["bytes"] > 0
    assert list_machine_accesses(ptx, "k", "", "compute_90") == list_machine_accesses("no PTX", "k", "", "sm_90") == []


#: Functions with arrays of 40 and 80 integers, of which the second calls the first, and a function that spills.
_FUNCTIONS = """
__device__ __noinline__ int small(const int* g, int n) {
    int a[40]; for (int i = 0; i < 40; i++) a[i] = g[i]; return a[n];
}
__device__ __noinline__ int large(const int* g, int n) {
    int a[80]; for (int i = 0; i < 80; i++) a[i] = g[i]; return a[n] + small(g, n + 1);
}
__device__ __noinline__ float spills(const float* g, int n) {
    float a[48], s = 0; for (int i = 0; i < 48; i++) a[i] = g[threadIdx.x + i * 32];
    for (int j = 0; j < n; j++) for (int i = 0; i < 48; i++) a[i] = a[i] * a[(i + 7) % 48] + a[(i + 1) % 48];
    for (int i = 0; i < 48; i++) s += a[i]; return s;
}
extern "C" __global__ void alone(int* o, const int* g, int n) { o[0] = g[n]; }
extern "C" __global__ void shallow(int* o, const int* g, int n) { o[0] = small(g, n); }
extern "C" __global__ void deep(int* o, const int* g, int n) { o[0] = large(g, n); }
extern "C" __global__ void __launch_bounds__(1024, 2) full(float* o, const float* g, int n) { o[0] = spills(g, n); }
"""


@pytest.mark.parametrize(
    ("entry", "least", "most", "spills"),
    [("alone", 0, 0, False), ("shallow", 160, 300, False), ("deep", 480, 700, False), ("full", 100, 300, True)],
)
def test_kernel_has_frames_and_spills_of_functions(entry: str, least: int, most: int, spills: bool) -> None:
    frame, stores, loads = (
        access["bytes"] for access in list_machine_accesses(compile_to_ptx(_FUNCTIONS), entry, "", "sm_90")
    )
    assert least <= frame <= most
    assert (stores > 100, loads > 100) == (spills, spills)
