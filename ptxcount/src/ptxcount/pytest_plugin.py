"""The fixture ``ptxcount``, which pytest finds by itself where ptxcount is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .counting.counters import LaunchCounters


@pytest.fixture
def ptxcount(request: pytest.FixtureRequest) -> Callable[..., LaunchCounters]:
    """Count a kernel of a file, with arguments as on the command line; the file's folder is that of pytest's settings.

    ``ptxcount("blur.cu", "blur<float>", 32, 256, ["out=float32[8192]", "n=int32:8192"]).loads.sectors_per_request``
    """
    from .cli.arguments import arguments  # noqa: PLC0415 - NumPy is loaded where the fixture is used, not in every session
    from .engine.launch import compile_entry, count_compiled  # noqa: PLC0415
    from .source.cpp_types import checked  # noqa: PLC0415
    from .source.nvcc import ARCH  # noqa: PLC0415

    root = request.config.rootpath

    def counted(
        file: str,
        kernel: str | None,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        words: Sequence[str],
        **more: Any,
    ) -> LaunchCounters:
        flags, arch = more.pop("flags", ""), more.pop("arch", ARCH)
        made, entry = compile_entry(root / file, kernel, flags, arch)
        given = checked(arguments(words, root), words, entry, made.files)
        return count_compiled(made.ptx, entry, grid, block, given, flags=flags, arch=arch, **more)

    return counted
