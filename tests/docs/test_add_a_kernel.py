"""Python blocks of docs/add-a-kernel.md, inserted where the page says."""

import re
import subprocess
import sys
from textwrap import dedent, indent

import pytest

from kernelwatch.config.project_root import ROOT

#: File that the page extends -> text before which the page's block goes, or "" for the file's end. In the page's order.
ENDS = {
    "gpu_kernels/kernels/subtract.cu": "",
    "gpu_kernels/catalog.py": "    )\n}\n",
    "gpu_kernels/references.py": "",
    "benchmarks/time_kernel.py": "",
    "benchmarks/track_counted.py": "",
}
PAGE = (ROOT / "docs" / "add-a-kernel.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```(?:python|cuda)\n(.*?)^ *```", PAGE, flags=re.DOTALL | re.MULTILINE)
#: File -> its block.
ADDED = dict(zip(ENDS, map(dedent, BLOCKS), strict=True))


def extend(file: str, text: str) -> str:
    """Return a file's text with the page's block."""
    end, block = ENDS[file], ADDED[file]
    if not end:
        return f"{text}\n\n{block}" if text else block
    return text.replace(end, f"{indent(block.rstrip(), ' ' * 8)},\n{end}", 1)


@pytest.mark.parametrize("file", [file for file in ENDS if file.endswith(".py")])
def test_ruff_accepts_extended_file(file: str) -> None:
    extended = extend(file, (ROOT / file).read_text(encoding="utf-8"))
    for words in (["check"], ["format", "--diff"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--quiet", "--stdin-filename", file, "-"]
        done = subprocess.run(ruff, cwd=ROOT, input=extended, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
