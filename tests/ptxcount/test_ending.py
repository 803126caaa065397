"""How commands end that the terminal ends; `test_command_line` has outputs that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ptxcount.test_gate import LAUNCH

#: An nvcc that says its version, and else takes a minute.
NVCC = """#!/bin/sh
case "$*" in *--version*) echo "release 13.0, V13.0.88"; exit;; esac
touch "$FOLDER/begun"
sleep 60
"""


#: A NumPy that takes a minute to import.
NUMPY = """import os, pathlib, time
pathlib.Path(os.environ["FOLDER"], "begun").touch()
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("words", "imported"), [(["check"], {}), (["scale.cu"], {}), (["scale.cu"], {"numpy.py": NUMPY})]
)
def test_interrupted(words: list[str], imported: dict[str, str], tmp_path: Path) -> None:
    """Ctrl-C ends what runs at once, with a line, also while it is imported."""
    for name, text in {"scale.cu": "", "ptxcount.toml": LAUNCH, "nvcc": NVCC, **imported}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "nvcc").chmod(0o755)
    environment = {**os.environ, "NVCC": str(tmp_path / "nvcc"), "FOLDER": str(tmp_path)}
    command = [sys.executable, "-m", "ptxcount", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)
    assert (process.returncode, *said) == (130, "", "ptxcount: interrupted\n")
