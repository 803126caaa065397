"""Python blocks of docs/add-a-kernel.md, inserted where the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from textwrap import dedent, indent

import pytest

from kernelwatch.config.project_root import ROOT

#: File that the page extends -> text before which the page's block goes, or "" for the file's end. In the page's order.
FILES = {
    "gpu_kernels/catalog.py": "    )\n}\n",
    "gpu_kernels/references.py": "",
    "benchmarks/time_kernel.py": "",
    "benchmarks/track_control.py": "",
    "benchmarks/track_counted.py": "",
}
PAGE = (ROOT / "docs" / "add-a-kernel.md").read_text(encoding="utf-8")
BLOCKS = [dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```", PAGE, flags=re.DOTALL | re.MULTILINE)]


@pytest.mark.parametrize(("file", "block"), [*zip(FILES, BLOCKS, strict=True)], ids=FILES)
def test_ruff_accepts_extended_file(file: str, block: str) -> None:
    text, end = (ROOT / file).read_text(encoding="utf-8"), FILES[file]
    place = text.index(end) if end else len(text)
    inserted = f"{indent(block.rstrip(), ' ' * 8)},\n" if end else f"\n\n{block}"
    extended = text[:place] + inserted + text[place:]
    for words in (["check"], ["format", "--diff"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--quiet", "--stdin-filename", file, "-"]
        done = subprocess.run(ruff, cwd=ROOT, input=extended, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
