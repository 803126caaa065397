"""Fingerprints of counts: each fact that affects a count changes the fingerprint."""

import inspect
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, outputs
from kernelwatch.config import settings
from kernelwatch.counting import launch_counts
from kernelwatch.instrument import build_job, fingerprint
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.kernel.parameters import ArrayParameter, ScalarParameter
from kernelwatch.suite import registry

#: A PTX module with two entry points and a variable. No test executes it.
_ENTRY = ".visible .entry {0}(.param .u64 out, .param .u64 x, .param .u32 stride)\n{{\n{1}\tret;\n}}\n"
_BARRIER = "\tbar.sync 0;\n"
_HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 4 .b8 table[8];\n"
COUNTED_PTX = _HEAD + _ENTRY.format("k", "") + _ENTRY.format("other", _BARRIER)


def _zeros(shape: Any, _factor: int = 1) -> Any:
    return np.zeros(shape)


def _ones(shape: Any, _factor: int = 2) -> Any:
    return np.ones(shape)


def _with_factor(factor: int) -> Any:
    """Return `_zeros` with another default of its second parameter."""
    function = FunctionType(_zeros.__code__, globals(), "_zeros", (factor,))
    function.__qualname__ = "_zeros"
    return function


def _make_arguments(array: dict[str, Any] | None = None, number: dict[str, Any] | None = None) -> list[Any]:
    x: dict[str, Any] = {"name": "x", "shape": "n", "direction": "in", "values": "random", "dtype": "int32"}
    stride: dict[str, Any] = {"name": "stride", "dtype": "int32", "value": 1}
    return [
        outputs("out", "n", "float32", ulp={"float16": 1}),
        ArrayParameter(**x | (array or {})),
        ScalarParameter(**stride | (number or {})),
    ]


COUNTED: dict[str, Any] = {
    "name": "k", "arguments": _make_arguments(), "block": 32, "over": ("n",), "ptx": COUNTED_PTX,
    "constants": {"table": np.zeros(2, "f4")}, "reference": _zeros,
}  # fmt: skip

#: Field of a kernel, an array or a scalar -> values, each of which must change the fingerprint of counts.
COUNTED_CHANGES: dict[str, list[Any]] = {
    "block": [64, (32, 2)],
    "over": [("2*n",)],
    "tile": [(8,)],
    "grid": [(7,)],
    "ptx": [COUNTED_PTX.replace("table[8]", "table[12]"), COUNTED_PTX.replace("\tret", f"{_BARRIER}\tret", 1)],
    "entry": ["other"],
    "dynamic_shared": [1024],
    "constants": [
        {"table": np.arange(2, dtype="f4")}, {"table": np.zeros(2, "i4")}, {"table": np.zeros((1, 2), "f4")}, {},
        {"table": lambda n: np.full(2, n, "f4")},
    ],
    "reference": [
        None, _ones, _with_factor(3), np.add,
        Kernel(**COUNTED),
        Kernel(**COUNTED | {"entry": "other"}),
        Kernel(**COUNTED | {"block": 64}),
        Kernel(**COUNTED | {"dynamic_shared": 64}),
        Kernel(**COUNTED | {"constants": {"table": np.arange(2, dtype="f4")}}),
        Kernel(**COUNTED | {"arguments": _make_arguments(number={"value": 2})}),
    ],
    "array.name": ["y"],  # the seed depends on the name, and a reference takes the array by its name
    "array.shape": ["n+1", lambda n: (n, 1)],
    "array.direction": ["in and out"],
    "array.dtype": ["uint32", np.dtype([("a", "i4")])],
    "array.values": ["bits", "zeros", _zeros, _ones, _with_factor(3)],
    "array.index": ["n", "n+1"],
    "array.seed": [1],
    "array.ulp": [1, 2],
    "number.dtype": ["float32"],
    "number.value": [32, "n", "2*n", lambda n: 3 * n],
}  # fmt: skip

#: Fields that affect counts only through the PTX or other fields, or not at all.
INDIRECT = {
    *("name", "file", "text", "options", "dtypes", "include", "prelude", "read", "where", "earlier", "useful_bytes"),
    *("flops", "arguments", "number.name", "number.least"),
}


def _hash_counts(kernel: dict[str, Any], monkeypatch: pytest.MonkeyPatch, **launch: Any) -> str:
    monkeypatch.setattr(registry, "find_kernel", lambda _: Kernel(**kernel))
    launches = [Launch(**{"kernel": "k", "dtype": "float32", "arguments": {"n": 96}} | launch)]
    (fingerprint_of_counts,) = launch_counts.hash_launches(launches).values()
    return fingerprint_of_counts


def test_each_fact_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal facts give equal fingerprints. Every field is in one of two tables."""
    fields = {*inspect.signature(Kernel).parameters}
    fields |= {f"array.{name}" for name in inspect.signature(ArrayParameter).parameters}
    fields |= {f"number.{name}" for name in inspect.signature(ScalarParameter).parameters}
    assert COUNTED_CHANGES.keys() | INDIRECT == fields
    variants = {"unchanged": COUNTED}
    for field, values in COUNTED_CHANGES.items():
        part, _, inner = field.rpartition(".")
        for index, value in enumerate(values):
            change = {"arguments": _make_arguments(**{part: {inner: value}})} if part else {field: value}
            variants[f"{field} {index}"] = COUNTED | change
    hashes = {name: _hash_counts(kernel, monkeypatch) for name, kernel in variants.items()}
    assert hashes == {name: _hash_counts(kernel, monkeypatch) for name, kernel in variants.items()}
    hashes["dtype"] = _hash_counts(COUNTED, monkeypatch, dtype="float16")
    hashes["arguments"] = _hash_counts(COUNTED, monkeypatch, arguments={"n": 95})
    monkeypatch.setattr(Kernel, "_read_constants", lambda _: {"SIZE": 4})
    hashes["read"] = _hash_counts(COUNTED, monkeypatch)
    monkeypatch.setattr(fingerprint, "_COUNTING_VERSION", "another")
    hashes["version"] = _hash_counts(COUNTED, monkeypatch)
    by_hash: dict[str, list[str]] = {}
    for name, value in hashes.items():
        by_hash.setdefault(value, []).append(name)
    assert [names for names in by_hash.values() if len(names) > 1] == []


def test_functions_of_one_module_differ() -> None:
    """Texts of functions include their defaults: two of these differ only in that of `_factor`."""
    texts = set()
    for values in (_zeros, _ones, _with_factor(3)):
        argument = Kernel(**COUNTED | {"arguments": _make_arguments({"values": values})}).bind_arguments("f4", n=9)[1]
        assert isinstance(argument, ArrayArgument)
        texts.add(build_job._device_array(argument).values)
    assert len(texts) == 3


@pytest.mark.parametrize(("function", "is_covered"), [(np.add, True), (None, False), (Kernel(**COUNTED), False)])
def test_function_without_source_depends_on_the_suite(
    function: Any, is_covered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function's hash covers the suite's files. The hash of a kernel or of None does not."""
    monkeypatch.setattr(registry, "find_measured_folder", lambda: tmp_path / "package")
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    monkeypatch.setattr(settings, "suite_folder", lambda: "suite")
    (tmp_path / "suite").mkdir()
    hashes = set()
    for text in ("# one", "# other"):
        (tmp_path / "suite" / "kernels.py").write_text(text)
        hashes.add(fingerprint.hash_function.__wrapped__(function))
    assert len(hashes) == 1 + is_covered
