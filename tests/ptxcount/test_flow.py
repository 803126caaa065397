"""Kernels of thousands of branches: analysed in seconds, or refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Branches of a kernel. Analysing each against each took minutes.
COUNT = 8000

#: What is repeated, with the number of its turn and of the turn before, and what the command says.
REPEATED = {
    "branch over nothing": ("@%p bra L{0};\nL{0}:\n", "StepLimitExceededError: PTX line "),
    "loop by itself": ("L{0}: @%p bra L{0};\n", "StepLimitExceededError: PTX line "),
    "branch between barriers": ("bar.sync 0;\n@%p bra L{0};\nL{0}:\n", "StepLimitExceededError: PTX line "),
    "loop around the one before": ("L{0}: @%p bra L{1};\n", "UnsupportedInstructionError: PTX line 4: '.entry k' is"),
}


@pytest.mark.parametrize(("repeated", "said"), REPEATED.values(), ids=REPEATED)
def test_many_branches(repeated: str, said: str, tmp_path: Path) -> None:
    """The limit on steps ends them soon, whatever their control flow is. A minute is many times what they take."""
    body = "".join(repeated.format(turn, max(turn - 1, 0)) for turn in range(COUNT))
    source = tmp_path / "branches.ptx"
    source.write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p;\n"
        f"setp.eq.u32 %p, 1, 1;\n{body}ret;\n}}\n"
    )
    command = [sys.executable, "-m", "ptxcount", str(source), "--entry", "k", "--grid", "1", "--block", "32"]
    done = subprocess.run([*command, "--step-limit", "3000"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(said), done.stderr
