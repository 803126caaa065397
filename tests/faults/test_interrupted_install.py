"""Ctrl-C during the first `make`: the next one makes `.venv` anew, and leaves a whole one as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwatch.config.project_root import ROOT


def _make(folder: Path) -> None:
    """Install nothing but the environment itself."""
    words = ["make", "--silent", f"--file={ROOT / 'Makefile'}", "install", "PIP=true", f"PYTHON={sys.executable}"]
    subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with what the Makefile's rule asks for, all of it empty."""
    requirements = [f"requirements/{name}.txt" for name in ("asv", "environment", "gpu", "nvcc")]
    for name in (
        "pyproject.toml",
        "ptxcount/pyproject.toml",
        "kernelwatch/pyproject.toml",
        "kernelwatch/src/kernelwatch/toolchain/pycuda_wheel.py",
        *requirements,
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_interrupted(folder: Path) -> None:
    """If not all of pip was there yet, one that installs is there afterwards."""
    venv = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "pip").mkdir()
    for part in ("__init__", "__main__"):
        (packages / "pip" / f"{part}.py").write_text("from pip._internal import main\n")
    _make(folder)
    subprocess.run([venv / "bin" / "python", "-m", "pip", "check"], capture_output=True, check=True)

    (venv / "kept").touch()
    (venv / "installed").unlink()
    _make(folder)
    assert (venv / "kept").exists()
    assert (venv / "installed").exists()
