"""The pytest fixture ``ptxcount``, available if ptxcount is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .counting.counters import LaunchCounters


@pytest.fixture
def ptxcount(request: pytest.FixtureRequest) -> Callable[..., LaunchCounters]:
    """Return a function that counts a kernel of a file, with arguments as on the command line.

    Paths are relative to pytest's rootdir. Options are as in `count`. The result is a `LaunchCounters`:

    ``ptxcount("blur.cu", "blur<float>", 32, 256, ["out=float32[8192]", "n=int32:8192"]).loads.sectors_per_request``
    """
    from .cli.argument_words import make_arguments, name_arguments  # noqa: PLC0415 - NumPy is loaded where the fixture is used, not in every session
    from .engine.kernel_counts import compile_entry, count_compiled  # noqa: PLC0415
    from .source.cpp_types import check_arguments  # noqa: PLC0415
    from .source.cuda_compiler import ARCH  # noqa: PLC0415

    root = request.config.rootpath

    def count_file(
        file: str,
        kernel: str | None,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        words: Sequence[str],
        **options: Any,
    ) -> LaunchCounters:
        options = {name: value for name, value in options.items() if value is not None}
        flags, arch = options.get("flags", ""), options.get("arch", ARCH)
        compilation, entry = compile_entry(root / file, kernel, flags, arch)
        arguments = make_arguments(words, root)
        check_arguments(arguments, words, entry, compilation.files)
        options["names"] = name_arguments(words)
        return count_compiled(compilation.ptx, entry, grid, block, arguments, **options)

    return count_file
