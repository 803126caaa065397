"""A folder for what a run and its processes write to TMPDIR; it goes with the run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from kernelwatch import home, project
from kernelwatch.mortal import RUN


@contextmanager
def of_a_run() -> Iterator[Path]:
    """Give this run and its processes a temporary folder, in which their home is if they have none."""
    with tempfile.TemporaryDirectory(prefix="kernelwatch-", ignore_cleanup_errors=True) as folder:
        names = {"TMPDIR": folder, RUN: str(os.getpid()), project.VARIABLE: str(project.ROOT)}
        if not home.is_there():
            names["HOME"] = folder  # pip needs one
        with mock.patch.object(tempfile, "tempdir", folder), mock.patch.dict(os.environ, names):
            yield Path(folder)
