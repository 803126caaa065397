"""PTX instructions on a device and in the executor: equal bits, except for the choice of NaN."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kernelwatch.kernel import load_function
from tests.ptxcount import lanes
from tests.ptxcount.snippets import evaluate
from tests.ptxcount.test_lanes import READ

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
COUNT = 1024


def _launch(text: str, threads: int, arrays: list[Array]) -> None:
    import pycuda.driver as cuda

    load_function.current_context()
    function = cuda.module_from_buffer(text.encode()).get_function("snippet")
    function(*map(cuda.InOut, arrays), grid=(1, 1), block=(threads, 1, 1))


@pytest.mark.parametrize(("operation", "group"), lanes.CASES)
def test_warp_operations_as_recorded(operation: str, group: str) -> None:
    """The device repeats the recorded results of an H200, also for undefined values. A missing record is printed."""
    out = np.full((32, 2), lanes.UNTOUCHED, np.uint32)
    _launch(lanes.text(operation, group), 32, [out])
    name, results = f"{operation}; {group}", json.dumps(out.tolist(), separators=(",", ":"))
    assert name in READ, f'add to tests/data/lanes-h200.json: "{name}": {results}'
    assert json.loads(results) == READ[name]


def _values(kind: str, place: int) -> Array:
    """Return COUNT values of a PTX type: random bits, small numbers and limits. bf16 values are uint16."""
    rng = np.random.default_rng([place, *kind.encode()])
    bits = rng.integers(0, 2**64, COUNT, dtype=np.uint64)
    if kind == "bf16":
        return (_values("f32", place).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "bf16x2":
        low, high = (_values("bf16", 2 * place + half).astype(np.uint32) for half in (0, 1))
        return low | (high << 16)
    size = int(kind[1:]) // 8
    if kind[0] != "f":
        integers = bits.astype(f"u{size}")
        integers[:256] >>= rng.integers(0, 8 * size, 256).astype(f"u{size}")
        integers[256:296] = rng.choice(np.array([0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1], integers.dtype), 40)
        return integers.view(f"{'i' if kind[0] == 's' else 'u'}{size}")
    real = bits.astype(f"u{size}").view(f"f{size}")
    limits = np.finfo(real.dtype)
    real[:400] = rng.normal(size=400) * 2.0 ** rng.integers(-12, 12, 400)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny]
    real[400:440] = rng.choice(np.array([*special, limits.smallest_subnormal], real.dtype), 40)
    return real


MODES = ("rn", "rz", "rm", "rp")
#: An instruction, the type of its operands, and the type of its result.
CASES: list[tuple[str, str, str]] = [
    *((f"{name}.{mode}{ftz}.{kind} {{d}}, {operands}", kind, kind)
      for name, operands in [("add", "{a}, {b}"), ("sub", "{a}, {b}"), ("mul", "{a}, {b}"), ("fma", "{a}, {b}, {c}"),
                             ("div", "{a}, {b}"), ("rcp", "{a}"), ("sqrt", "{a}")]
      for mode in MODES for kind, ftz in (("f32", ""), ("f32", ".ftz"), ("f64", ""))),
    *((f"{name}.{mode}.sat.f32 {{d}}, {operands}", "f32", "f32")
      for name, operands in [("add", "{a}, {b}"), ("fma", "{a}, {b}, {c}")] for mode in MODES),
    *((f"{name}.{kind} {{d}}, {operands}", kind, kind)
      for name, operands in [("add.rn", "{a}, {b}"), ("sub.rn", "{a}, {b}"), ("mul.rn", "{a}, {b}"), ("abs", "{a}"),
                             ("fma.rn", "{a}, {b}, {c}"), ("fma.rn.relu", "{a}, {b}, {c}"), ("min", "{a}, {b}"),
                             ("max", "{a}, {b}"), ("min.NaN", "{a}, {b}"), ("max.NaN", "{a}, {b}"), ("neg", "{a}")]
      for kind in ("bf16", "bf16x2")),
    *((f"cvt.{mode}{relu}.{kind}.f32 {{d}}, {operands}", "f32", result)
      for kind, result, operands in [("bf16", "u16", "{a}"), ("f16", "f16", "{a}"), ("bf16x2", "u32", "{a}, {b}"),
                                     ("f16x2", "u32", "{a}, {b}")]
      for mode in ("rn", "rz") for relu in ("", ".relu")),
    ("cvt.f32.bf16 {d}, {a}", "bf16", "f32"),
    ("fma.rn.relu.f16 {d}, {a}, {b}, {c}", "f16", "f16"),
    *((code.replace("TYPE", kind), kind, kind) for kind in ("u32", "s32", "u64", "s64") for code in [
        "add.cc.TYPE {d}, {a}, {b}; addc.TYPE {d}, {c}, {e}",
        "sub.cc.TYPE {d}, {a}, {b}; subc.TYPE {d}, {c}, {e}",
        "sub.cc.TYPE {d}, {a}, {b}; subc.cc.TYPE {d}, {c}, {e}; subc.TYPE {d}, 7, 0",
        "mad.lo.cc.TYPE {d}, {a}, {b}, {c}; madc.hi.TYPE {d}, {a}, {b}, {e}",
        "mad.hi.cc.TYPE {d}, {a}, {b}, {c}; addc.TYPE {d}, {e}, 0",
    ]),
    *((f"bfind.shiftamt.{kind} {{d}}, {{a}}", kind, "u32") for kind in ("u32", "s32", "u64", "s64")),
    *((f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}}", "u32", "u32") for mode in ("clamp", "wrap")),
    *((f"{name}.{first_type}.{two} {{d}}, {{a}}, {{b}}, {{c}}", "u32", "s32")
      for name in ("dp4a", "dp2a.lo", "dp2a.hi") for first_type in ("u32", "s32") for two in ("u32", "s32")),
    *((f"cvt.{mode}.tf32.f32 {{d}}, {{a}}", "f32", "u32") for mode in ("rna", "rn", "rz")),
    *((f"cvt.rn.bf16.{kind} {{d}}, {{a}}", kind, "u16") for kind in ("u32", "s32")),
    *((f"cvt.rn.satfinite.{kind}x2.f32 {{d}}, {{a}}, {{b}}", "f32", "u16") for kind in ("e4m3", "e5m2")),
    *((f"cvt.rn.satfinite.{kind}x2.f16x2 {{d}}, {{a}}", "u32", "u16") for kind in ("e4m3", "e5m2")),
    *((f"cvt.rn.f16x2.{kind}x2 {{d}}, {{a}}", "u16", "u32") for kind in ("e4m3", "e5m2")),
    *((f"vabsdiff4.u32.{first_type}.{second_type}.add {{d}}, {{a}}, {{b}}, {{c}}", "u32", "u32")
      for first_type in ("u32", "s32") for second_type in ("u32", "s32")),
    *((f"{name}.u32.{first_type}.u32.{mode}.add {{d}}, {{a}}, {{b}}, {{c}}", "u32", "u32")
      for name in ("vshl", "vshr") for first_type in ("u32", "s32") for mode in ("clamp", "wrap")),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "kind", "result"), CASES)
def test_instruction_gives_equal_bits(instruction: str, kind: str, result: str) -> None:
    count = sum(f"{{{letter}}}" in instruction for letter in "abce")
    operands = [_values(kind, place) for place in range(count)]
    dtype = {"bf16": "u2", "bf16x2": "u4"}.get(
        result
    ) or f"{ {'s': 'i'}.get(result[0], result[0]) }{int(result[1:]) // 8}"
    on_cpu, on_device = (evaluate(instruction, operands, dtype, *launcher) for launcher in ([], [_launch]))
    bits = f"u{on_cpu.itemsize}"
    is_equal = (on_cpu.view(bits) == on_device.view(bits)) | _both_nan(result, on_cpu, on_device)
    assert is_equal.all(), [(int(i), on_cpu[i], on_device[i]) for i in np.flatnonzero(~is_equal)[:4]]


def _both_nan(kind: str, first: Array, second: Array) -> Array:
    """Return the places where both are NaN: in a bfloat16, bits without the sign above those of infinity, 0x7F80."""
    if kind[0] == "f":
        return np.isnan(first) & np.isnan(second)
    halves = [values.view(np.uint16) & 0x7FFF for values in (first, second)]
    if kind == "bf16":
        return (halves[0] > 0x7F80) & (halves[1] > 0x7F80)
    if kind == "bf16x2":
        alike = (first.view(np.uint16) == second.view(np.uint16)) | ((halves[0] > 0x7F80) & (halves[1] > 0x7F80))
        return np.asarray(alike.reshape(-1, 2).all(axis=1))
    return np.zeros(len(first), bool)
