"""Ctrl-C during `make install`: the next `make install` repairs an incomplete `.venv`, and keeps a complete one."""

import re
import subprocess
import sys
from pathlib import Path

import pip
import pytest

from kernelwatch.config.project_root import ROOT

#: A Python that copies the pip of these tests into its environments: `ensurepip` would take seconds.
PACKAGES = Path(pip.__file__).parents[1]
PYTHON = f"""#!/bin/sh
{sys.executable} "$@" --without-pip && cp -r {PACKAGES}/pip {PACKAGES}/pip-*.dist-info .venv/lib/python*/site-packages
"""


def _make(folder: Path) -> None:
    words = ["make", "--silent", f"--file={ROOT / 'Makefile'}", "install", "PIP=true", "PYTHON=./python"]
    subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (rule,) = re.findall(r"^\$\(VENV\)/installed: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for name in rule.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def test_interrupted_install_is_repaired(folder: Path) -> None:
    """An incomplete pip is replaced. An environment with a working pip is kept."""
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
