"""Each thing that a number depends on changes its fingerprint; what it does not depend on does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.instruments import fingerprint
from benchmarks.instruments.job import Job
from benchmarks.instruments.verification import Near
from tests import served

#: Every field of a job that says what is launched, on what, and how it is measured -> another value.
CHANGES: dict[str, Any] = {
    "cubin": b"\x7fELG",
    "entry": "other",
    "grid": (2, 1, 1),
    "block": (64, 1, 1),
    "dynamic_shared": 1024,
    "integers": (7,),
    "scalars": (0.5,),
    "dtype": "uint8",
    "output_shape": (50, 100),
    "output_bytes": 5001,
    "input_bytes": (5001,),
    "useful_bytes": 10001,
    "exact_dtype": "float32",
    "near": Near("float32", 2.0),
    "in_l2": True,
    "isolated": True,
    "samples": 3,
    "every": 100,
}
TEXTS = {"name": "another kernel", "commit": "decade", "reference": "ones"}


def test_every_field_is_here() -> None:
    """A field that is new must be sorted into one of the two tables."""
    assert {*CHANGES, *TEXTS} == set(Job.__struct_fields__)


@pytest.mark.parametrize("field", [*CHANGES, *TEXTS])
def test_job(field: str) -> None:
    """Each field, one at a time."""
    changed = served.job(**{field: (CHANGES | TEXTS)[field]})
    assert (fingerprint.job(changed, "c") != fingerprint.job(served.job(), "c")) == (field in CHANGES)


GPU = {
    "uuid": "GPU-1",
    "driver": "580.159.04",
    "cuda": 13000,
    "max_sm_clock_mhz": 1980,
    "max_memory_clock_mhz": 3201,
    "memory_bus_bits": 6016,
    "power_limit_mw": 700000,
    "ecc": True,
    "application_sm_clock_mhz": 1980,
    "application_memory_clock_mhz": 3201,
}


@pytest.mark.parametrize("fact", GPU)
def test_gpu(fact: str) -> None:
    """Each fact of the GPU; what changes from moment to moment is none."""
    known = fingerprint.conditions(GPU)
    assert fingerprint.conditions({**GPU, fact: 1}) != known
    assert fingerprint.conditions({**GPU, "temperature_c": 60, "sm_clock_mhz": 345}) == known


def test_unknown_gpu() -> None:
    """Without a name of its own, a GPU could be any: nothing is equal then."""
    assert fingerprint.conditions({**GPU, "uuid": None}) == fingerprint.conditions({}) == ""


SOURCE = '"""Text."""\n\ndef f(x):\n    """More text."""\n    return x + 1  # why\n'


@pytest.mark.parametrize(
    ("source", "is_same"),
    [
        ('"""Other text."""\n\n\ndef f(x):\n    """Other text."""\n    return x + 1\n', True),
        (SOURCE.replace("+ 1", "+ 2"), False),
        (SOURCE.replace("x", "y"), False),
        (SOURCE + "\n\ndef g():\n    return 1\n", False),
    ],
)
def test_code(source: str, is_same: bool, tmp_path: Path) -> None:
    """Python counts, its comments, docstrings and layout do not."""
    (tmp_path / "a.py").write_text(SOURCE)
    before = fingerprint.code([tmp_path / "a.py"])
    (tmp_path / "a.py").write_text(source)
    assert (fingerprint.code([tmp_path / "a.py"]) == before) == is_same


def test_instrument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The instrument's modules, its kernels, and the packages that drive the GPU."""
    read: list[Path] = []

    def code(paths: list[Path]) -> str:
        read.extend(paths)
        return ""

    monkeypatch.setattr(fingerprint, "code", code)
    known = fingerprint.instrument()
    names = {path.name for path in read}
    assert {"measuring.py", "job.py", "fingerprint.py", "tools.cu", "stamp.cu"} <= names
    monkeypatch.setattr(fingerprint, "version", lambda name: "9" if name == "pycuda" else "1")
    assert fingerprint.instrument() != known


def test_counter_is_all_that_counts() -> None:
    """Every module of the counter, and what feeds and checks it."""
    names = {path.name for path in fingerprint._COUNTER}
    assert {"execute.py", "parser.py", "transactions.py", "inputs.py", "verification.py"} <= names


PTX = """//
// Compiler Build ID: CL-1
.version 9.0
.target sm_90

.visible .entry one(
	.param .u64 one_param_0
)
{
	.loc	1 23 0
	mov.u32 	%r1, %ctaid.x;
	ret;
}

.visible .entry two(
	.param .u64 two_param_0
)
{
	.loc	1 30 0
	mov.u32 	%r1, %tid.x;
	ret;
}
	.file	1 "/tmp/kernel.cu"
	.section	.debug_str
	{
.b8 95
	}
"""


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("CL-1", "CL-2", True),
        ("1 23 0", "1 24 0", True),
        (".b8 95", ".b8 96", True),
        ("%tid.x", "%tid.y", True),
        ("%ctaid.x", "%ctaid.y", False),
        ("sm_90", "sm_100", False),
        ("one_param_0\n", "one_param_0,\n", False),
    ],
)
def test_ptx(old: str, new: str, is_same: bool) -> None:
    """A kernel's own instructions and what all have in common; not source lines, and not the kernel beside it."""
    assert (fingerprint.ptx(PTX.replace(old, new), "one") == fingerprint.ptx(PTX, "one")) == is_same


def test_of_is_stable() -> None:
    """Stored fingerprints must be found again: the order of a dict is no matter, and the value is fixed."""
    assert fingerprint.of({"a": 1, "b": b"x"}, [2]) == fingerprint.of({"b": b"x", "a": 1}, [2]) == "f34f3043e6027493"
