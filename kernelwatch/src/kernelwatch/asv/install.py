"""Installs a commit of the project into an environment of asv: `python install.py BUILD_DIR`, called by asv.

It runs on the environment's own Python, so it uses the standard library only. The instrument's requirements come from
the newest checkout. From the commit, only its package is installed. PyCUDA is installed only if there is a driver, and
nvcc only if there is none yet.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(1, str(Path(__file__).parents[4] / "ptxcount" / "src"))  # there in a checkout only

from kernelwatch import mortal
from kernelwatch.project import ROOT
from kernelwatch.toolchain import pycuda_wheel


def has_driver() -> bool:
    """Whether the CUDA driver's library is on this machine."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def pip(*arguments: str) -> None:
    """Run pip in this environment. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, preexec_fn=mortal.end_with_parent)


def install_instrument() -> None:
    """Install what the instrument needs, if that has changed since the last time."""
    files = [ROOT / "requirements" / "environment.txt"]
    if not (os.environ.get("NVCC") or shutil.which("nvcc")):
        files.append(ROOT / "requirements" / "nvcc.txt")
    if has_driver():
        files.append(ROOT / "requirements" / "gpu.txt")
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    note = Path(sys.prefix) / "instrument-installed.txt"
    if note.exists() and note.read_text() == wanted:
        return
    if has_driver():
        pycuda_wheel.install()
    pip(*(argument for file in files for argument in ("-r", str(file))))
    note.write_text(wanted)


def show_libraries() -> None:
    """Let this environment import the libraries from where they are: copies would go out of date."""
    found = (find_spec(name) for name in ("kernelwatch", "ptxcount"))
    folders = dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin)
    path = Path(sysconfig.get_paths()["purelib"], "ptxcount-of-checkout.pth")
    path.write_text("".join(f"{folder}\n" for folder in folders), encoding="utf-8")


def main() -> None:
    """Install the instrument and the commit checked out in the folder given."""
    (build_dir,) = sys.argv[1:]
    install_instrument()
    show_libraries()
    # --no-build-isolation: asv has put the build backend into the environment, and it saves seconds a commit.
    pip("--no-deps", "--no-build-isolation", "--force-reinstall", "--quiet", build_dir)


if __name__ == "__main__":
    main()
