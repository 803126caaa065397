"""Machine code that ptxas makes of PTX."""

import re
import subprocess
from pathlib import Path

#: The first lines of each module.
HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
_SECTION = re.compile(r"\s*\.section\s+\.text\.(\S+?),")


def disassemble(text: str, nvdisasm: Path, folder: Path, arch: str = "sm_90a") -> dict[str, list[str]]:
    """Return the lines of machine code of each kernel."""
    source, cubin = folder / "kernels.ptx", folder / "kernels.cubin"
    source.write_text(text)
    words = [str(nvdisasm.with_name("ptxas")), "-arch", arch, str(source), "-o", str(cubin)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    done = subprocess.run([str(nvdisasm), "-c", str(cubin)], check=True, capture_output=True, text=True)
    kernels: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in done.stdout.splitlines():
        if section := _SECTION.match(line):
            lines = kernels[section[1]] = []
        lines.append(line)
    return kernels
