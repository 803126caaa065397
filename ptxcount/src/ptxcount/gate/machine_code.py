"""What ptxas makes of a kernel beside its accesses: the stack frame, where arrays fall to, and spilled registers."""

from __future__ import annotations

import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..source.nvcc import call, find_nvcc, words
from ..util.errors import PtxError

_PROPERTIES = re.compile(
    r"Function properties for (\S+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
#: What the three numbers are, as accesses are called: the space and the kind.
_KINDS = (("stack", "frame"), ("spill", "store"), ("spill", "load"))


def memory_of(ptx: str, entry: str, flags: str, arch: str) -> list[dict[str, Any]]:
    """The bytes a thread, written as accesses of `listing.lines`; none where there is no ptxas for this PTX."""
    found = _compiled(ptx, flags, arch).get(entry, ())
    return [
        {"space": space, "kind": kind, "width": 0, "ptx_line": 0, "bytes": number}
        for (space, kind), number in zip(_KINDS, found, strict=False)
    ]


@lru_cache(maxsize=64)
def _compiled(ptx: str, flags: str, arch: str) -> dict[str, tuple[int, ...]]:
    with tempfile.TemporaryDirectory(prefix="ptxcount-") as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx, encoding="utf-8")
        target = str(source.with_suffix(".cubin"))
        options = ["-cubin", "-arch", arch, *words(flags), "-Xptxas", "-v", str(source), "-o", target]
        try:
            done = call([str(find_nvcc()), *options])
        except PtxError:
            return {}
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    return {name: tuple(map(int, numbers)) for name, *numbers in _PROPERTIES.findall(said)}
