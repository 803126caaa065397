"""The four kernels in Mojo, whose compiler writes a file of PTX for each."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from ..problems import Launch, N, Problem

VERSION = f"Mojo {version('mojo')}"
#: Grid and block of each problem.
LAUNCHES = {
    "copy": (N * N // 128, 128),
    "transpose": ((2, N // 4), (32, 4)),
    "reduction": (1, N),
    "product": ((2, N // 4), (32, 4)),
}


@lru_cache
def compile_kernels(arch: str) -> dict[str, str]:
    """Compile `kernels.mojo`; return the PTX of each kernel by name."""
    source = Path(__file__).with_name("kernels.mojo")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.prefix, "bin", "mojo")), "build", "--emit", "asm", "--target-accelerator", arch]
        subprocess.run([*command, str(source), "-o", f"{folder}/k.s"], check=True, capture_output=True)
        return {path.name.split("_")[2]: path.read_text(encoding="utf-8") for path in Path(folder).glob("*.ptx")}


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    ptx = compile_kernels(arch)[problem.name]
    return Launch(ptx, *LAUNCHES[problem.name], [*problem.inputs, problem.output])
