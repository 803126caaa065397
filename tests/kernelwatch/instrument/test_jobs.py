"""Jobs: what an output must hold, laid out in the measuring process's memory; and the package that they are of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kernelwatch
from gpu_kernels import catalog, references
from kernelwatch import suite
from kernelwatch.instrument import inputs, jobs
from kernelwatch.instrument.inputs import POISON
from kernelwatch.kernel import Launch

Array = NDArray[Any]

#: What references may return -> one that does: a copy of the input's last elements, behind the output's first.
RETURNED: dict[str, Callable[[Array, Array], Array]] = {
    "another array": lambda output, input: np.concatenate([output[:1], input[1:]]),
    "the output, written into": lambda output, input: references.offset_copy(output, input, 1),
    "a view of the output, backwards": lambda output, input: _backwards(output, input)[::-1],
}


def _backwards(output: Array, input: Array) -> Array:
    output[:-1], output[-1] = input[:0:-1].copy(), output[0]
    return output


@pytest.mark.parametrize("size", [5, 1 << 21])
@pytest.mark.parametrize("returned", RETURNED)
def test_what_is_expected_lies_at_the_beginning(returned: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes are those that the reference says, and poison follows up to the end."""
    arrays = [kernelwatch.outputs("output", "size"), kernelwatch.inputs("input", "size", values="bits")]
    name = "copy_behind_the_first"
    kernel = kernelwatch.Kernel(name, arrays, 256, over=("size",), file="none.cu", reference=RETURNED[returned])
    monkeypatch.setitem(catalog.KERNELS, kernel.name, kernel)
    reference = jobs.of(Launch(kernel.name, "float32", arguments={"size": size}), samples=1).reference
    found = reference.content()
    held = inputs.repeated(None, inputs.start(0), 4 * size)
    assert (found[:4] == POISON).all()
    assert np.array_equal(found[4 : 4 * size], held[4:])
    assert (found[4 * size :] == POISON).all()
    assert reference.length > 4 * size


@pytest.mark.parametrize(
    ("file", "counts"),
    [("a.py", True), ("kernels/k.cu", True), ("kernels/k.cuh", True), ("k.h", True), ("kernels/README.md", False)],
)
def test_package_digest(file: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs whose modules or sources differ are those of two packages."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.setattr(suite, "folder", lambda: tmp_path)
    digests = set()
    for text in ("one", "other"):
        (tmp_path / file).write_text(text)
        digests.add(jobs.package_digest.__wrapped__())
    assert len(digests) == 1 + counts
