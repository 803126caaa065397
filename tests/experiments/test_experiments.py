"""Experiments where the catalog has grown since something was kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from experiments import bias, kinds, pages, slowdowns
from experiments.peers import __main__ as peers
from gpu_kernels import FLAG_SETS, KERNELS
from gpu_kernels.operations import TRANSPOSE
from gpu_kernels.spec import Kernel, Operation
from gpu_kernels.sweep import EVERY_KERNEL, Sweep

#: Two inputs and a floating-point argument; its first dtype is not the usual one.
SCALE_AND_ADD = Operation(
    "scale and add",
    minimum={"size": 1},
    shapes=lambda size: ((size,), (size,), (size,)),
    reference=lambda output, one, other, size, factor: factor * one + other,
    scalars=("factor",),
    values="exact",
    names=("float64", "float32"),
    timed=(
        Sweep(
            "ScaleAndAdd",
            "Scale and add, DRAM",
            {"kernel": EVERY_KERNEL, "size": (1 << 20, 1 << 24), "dtype": ("float64", "float32"), "flags": FLAG_SETS},
            fixed={"factor": 2},
            shown={"size": 1 << 24},
        ),
    ),
)

NEW = {
    row.name: row
    for row in (
        Kernel("transpose_new", "transpose.cu", TRANSPOSE, (32, 32, 1), ("columns", "rows")),
        Kernel("scale_and_add", "scale_and_add.cu", SCALE_AND_ADD, (256, 1, 1), ("size",)),
        Kernel("scale_and_add_by_two", "scale_and_add.cu", SCALE_AND_ADD, (128, 1, 1), ("size",)),
    )
}


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of an operation that there was, and an operation more."""
    for name, kernel in NEW.items():
        monkeypatch.setitem(KERNELS, name, kernel)


@pytest.mark.parametrize("experiment", [bias, slowdowns])
def test_new_kernels_are_measured(experiment: ModuleType, request: pytest.FixtureRequest) -> None:
    """They are among the cases, and no other case has changed."""
    before = experiment.cases()
    request.getfixturevalue("grown")
    after = experiment.cases()
    assert {name: after[name] for name in before} == before
    new = [launch for name, launch in after.items() if name not in before]
    assert {launch.kernel for launch in new} == set(NEW)
    added = [launch for launch in new if launch.kernel == "scale_and_add"]
    assert all(launch.arguments["factor"] == 2 for launch in added)
    chosen = {("float32", 1 << 24)}
    every = {(dtype, size) for dtype in SCALE_AND_ADD.names for size in (1 << 20, 1 << 24)}
    found = {(launch.dtype, launch.arguments["size"]) for launch in added}
    assert found == (every if experiment is bias else chosen)


@pytest.mark.usefixtures("grown")
@pytest.mark.parametrize(
    ("name", "main", "tells"),
    [
        ("bias", bias.main, True),
        ("slowdowns", slowdowns.main, True),
        ("kinds", kinds.main, False),
        ("peers", peers.main, False),
    ],
)
def test_what_is_kept_is_rendered(
    name: str, main: Callable[[Sequence[str]], int], tells: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is what it was, and what it lacks is told, where kernels of the catalog are meant to be on it."""
    assert main(["--render", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == (pages.EVIDENCE / f"{name}.md").read_text(
        encoding="utf-8"
    )
    said = capsys.readouterr().err
    assert [kernel in said for kernel in NEW] == [tells] * len(NEW)
    assert said.startswith("not measured: ") == tells
