"""Two ways to call nvcc with the same arguments: through PyCUDA, and directly where PyCUDA cannot be imported."""

from __future__ import annotations

import ctypes
import shlex
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gpu_kernels.errors import CompileError


@dataclass(frozen=True)
class Compiled:
    """What nvcc wrote: the object, and what it said."""

    data: bytes
    messages: str


@lru_cache
def pycuda_importable() -> bool:
    """Whether PyCUDA is installed and its driver library is there (no device is needed to compile)."""
    try:
        ctypes.CDLL("libcuda.so.1")  # asked first: without it PyCUDA warns of mismatched versions before it fails
    except OSError:
        return False
    try:
        import pycuda.driver  # noqa: F401, PLC0415 -- only when called: the rest works without PyCUDA
    except ImportError:
        return False
    return True


def through_pycuda(nvcc: Path, target: str, options: Sequence[str], arch: str, source: str) -> Compiled:
    """Compile `source` with `pycuda.compiler.compile`. Raises CompileError with nvcc's own text."""
    import pycuda.compiler  # noqa: PLC0415 -- as above
    import pycuda.driver  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            data = pycuda.compiler.compile(
                source,
                nvcc=str(nvcc),
                options=list(options),
                no_extern_c=True,
                arch=arch,
                cache_dir=False,
                target=target,
            )
        except pycuda.driver.CompileError as error:
            raise _refused(error.command_line, f"{error.stdout or ''}{error.stderr or ''}") from None
    return Compiled(data, "\n".join(str(warning.message) for warning in said))


def directly(nvcc: Path, target: str, options: Sequence[str], arch: str, source: str) -> Compiled:
    """Compile `source` with the same command line as PyCUDA's. Raises CompileError with nvcc's own text."""
    with tempfile.TemporaryDirectory() as folder:
        # PyCUDA's own file name: nvcc may leave it in its output.
        Path(folder, "kernel.cu").write_text(source, encoding="utf-8")
        command = [str(nvcc), f"--{target}", *options, "-arch", arch, "kernel.cu"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise _refused(command, done.stdout + done.stderr)
        return Compiled(Path(folder, f"kernel.{target}").read_bytes(), done.stdout + done.stderr)


def _refused(command: Sequence[str], text: str) -> CompileError:
    return CompileError(f"nvcc failed: {shlex.join(command)}\n{text.strip()}")
