"""The pytest fixture ``ptxcount``, available if ptxcount is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .counting.counters import LaunchCounters

_ADVICE = "ptxcount.count takes arrays and numbers"


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
    from .util.errors import LaunchError, PtxError  # noqa: PLC0415

    root = request.config.rootpath

    def count_file(
        file: str,
        kernel: str | None,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        words: Sequence[str],
        **options: Any,
    ) -> LaunchCounters:
        __tracebackhide__ = True
        options = {name: value for name, value in options.items() if value is not None}
        flags, arch = options.get("flags", ""), options.get("arch", ARCH)
        try:
            for position, word in enumerate(words):
                if not isinstance(word, str):
                    raise LaunchError(f"argument {position} is not a text such as x=float32[64]; {_ADVICE}")
            compilation, entry = compile_entry(root / file, kernel, flags, arch)
            arguments = make_arguments(words, root)
            check_arguments(arguments, words, entry, compilation.files)
            options["names"] = name_arguments(words)
            return count_compiled(compilation.ptx, entry, grid, block, arguments, **options)
        except PtxError as error:
            raise error.with_traceback(None)  # noqa: B904 - pytest shows the line of the test, not the library's

    return count_file
