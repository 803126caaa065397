"""What the page Transactions shows of the current checkout: the kernels' source with what each line costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelwatch import suite
from kernelwatch.counting import source_lines

#: Where no run has counted a kernel as it is now.
NOT_COUNTED = "no stored run has counted this source; run: kernelwatch run"


def sources(results: Path) -> list[dict[str, Any]]:
    """Return of each kernel of the catalog its launch, its annotated lines, or why there are none."""
    stored = source_lines.read(results)
    shown = []
    for launch in source_lines.launches():
        text = stored.get(source_lines.key(launch))
        shown.append(
            {
                "kernel": launch.kernel,
                "file": suite.kernel(launch.kernel).source.name,
                "launch": str(launch),
                "lines": [] if text is None else text.splitlines(),
                "problem": NOT_COUNTED if text is None else None,
            }
        )
    return shown
