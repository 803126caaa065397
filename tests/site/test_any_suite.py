"""The site of anybody's suite: nothing of this project's is in it, and what it shows comes from the suite's rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_kernels import KERNELS
from kernelwatch import Kernel, inputs, outputs, settings, suite
from kernelwatch.show.site import commits, pages
from kernelwatch.suite import Suite
from kernelwatch.sweep import Sweep

SWEEP = {"h": (64,), "w": (128, 256), "dtype": ("float32", "float64"), "flags": ("-Xptxas -O3",)}
BENCHMARK = "time_kernel.Blur.time_back_to_back"


@pytest.fixture(autouse=True)
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A suite of two kernels, of which one has a reference, in a project that names no package."""
    arguments: Any = [outputs("out", "h w"), inputs("image", "h w"), "w", "h"]
    block: dict[str, Any] = {"block": (32, 8), "over": ("w", "h")}
    kernels: Any = {
        "blur": Kernel("blur", arguments, file="imaging/blur.cu", entry="imaging::blur<{T}, 4>", **block),
        "sharpen": Kernel("sharpen", arguments, text="vision.kernels:TEXT", reference=lambda image: image, **block),
    }
    made = Suite(kernels=lambda: kernels, timed=(), copy=None, counted=(), compiled=Sweep("Compiled", "Compiled", {}))
    monkeypatch.setattr(suite, "current", lambda: made)
    monkeypatch.setattr(settings, "package", lambda: "")
    commits.measured.cache_clear()
    yield
    commits.measured.cache_clear()


def test_commits_that_touch_the_kernels() -> None:
    """Of a project without a package those of its kernels' folders, and kernels by what their source calls them."""
    assert commits.measured() == (
        ":(glob)**/imaging", ":(glob)**/imaging/**", ":(glob)**/vision", ":(glob)**/vision/**",
    )  # fmt: skip
    asked: list[tuple[str, ...]] = []

    def git(words: list[str], **_: Any) -> str:
        asked.append(tuple(words))
        return "c0ffee:src/imaging/blur.cuh:__global__ void blur(T* out, const T* image, int w, int h)\n"

    commits.changed_lines(SimpleNamespace(_run_git=git), "decaf0", "c0ffee", ["blur"])
    searched, *compared = asked
    assert (searched[-len(commits.measured()) :], [one[-1] for one in compared]) == (
        commits.measured(), ["src/imaging/blur.cuh", commits.measured()[-1]],
    )  # fmt: skip


def test_nothing_of_this_suite_is_in_the_pages() -> None:
    """Neither a kernel nor an axis, a dtype, an architecture or a command of the Makefile."""
    words = "|".join((*KERNELS, "transpose", "matrix", "rows x", "lecture", "float32", "int8", r"sm_\d", "make [bcs]"))
    folder = Path(pages.__file__).parent
    sources = [*folder.glob("*.py"), *folder.glob("static/*"), *folder.glob("templates/*")]
    assert len(sources) > 20
    for path in sources:
        for line in path.read_text(encoding="utf-8").splitlines():
            said = line.partition(" // ")[0].lstrip()
            assert said.startswith(("#", "/")) or not re.search(words, said), f"{path.name}: {line}"
