"""Commands that wait for a compiler when a signal ends them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: An nvcc that reports its version, and otherwise hangs for a minute with a temporary file.
NVCC = """#!/bin/sh
case "$*" in *--version*) echo "release 13.0, V13.0.88"; exit;; esac
touch "$TMPDIR/tmpxft" "$FOLDER/begun"
sleep 60
"""


def end_process(
    words: list[str], number: signal.Signals, begun: Path, folder: Path, **variables: str
) -> tuple[int, str, str]:
    """Run ``python -m`` with words, and send it a signal once its nvcc runs.

    `NVCC` is the file ``nvcc`` of the folder `begun`. Return exit code, standard output and standard error.
    """
    variables |= {"NVCC": str(begun / "nvcc"), "FOLDER": str(begun), "TMPDIR": str(begun / "temporary")}
    with subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, env=os.environ | variables, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        end = time.monotonic() + 30
        while not (begun / "begun").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(number)
        outputs = process.communicate(timeout=30)
    return process.returncode, *outputs
