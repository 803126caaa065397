"""Call nvcc through PyCUDA, or directly if PyCUDA cannot be imported, and ptxas. Both ways give the same PTX."""

import ctypes
import re
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernelwatch.errors import CompileError
from kernelwatch.toolchain.nvcc import environment_options, run_nvcc

#: ptxas' error for PTX of a newer release, as recent Triton writes it. CUDA 13.N has PTX 9.N.
_NEWER_PTX = re.compile(r"Unsupported \.version 9\.(\d+); current version is '[\d.]+'")


@dataclass(frozen=True)
class NvccOutput:
    """The output of nvcc: the bytes of the PTX or the cubin, and its messages."""

    data: bytes
    messages: str


@lru_cache
def find_pycuda_problem() -> str | None:
    """Return why PyCUDA cannot be imported, with a remedy unless the driver is missing; None if it can.

    Importing needs no device.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")  # before PyCUDA does, which would warn of mismatched versions
    except OSError:
        return "no GPU can be used: libcuda.so.1 of NVIDIA's driver is missing"
    try:
        import pycuda.driver  # noqa: F401, PLC0415 -- the rest works without PyCUDA
    except ModuleNotFoundError as error:
        return f"PyCUDA is not installed ({error}); run: kernelwatch pycuda-wheel"
    except ImportError as error:
        version = ctypes.c_int()  # 1000 major + 10 minor
        library.cuDriverGetVersion(ctypes.byref(version))
        release = f"{version.value // 1000}.{version.value % 1000 // 10}"
        return (
            f"PyCUDA cannot be imported: {error}; if it was built with a newer CUDA than this driver's {release}, "
            "or on a newer system, update the driver, or build PyCUDA again on this machine"
        )
    return None


def can_import_pycuda() -> bool:
    """Return whether PyCUDA can be imported."""
    return find_pycuda_problem() is None


def compile_with_pycuda(nvcc: Path, options: Sequence[str], arch: str, text: str) -> NvccOutput:
    """Compile CUDA C++ to PTX with `pycuda.compiler.compile`. Raises CompileError with nvcc's messages."""
    import pycuda.compiler  # noqa: PLC0415 -- may be missing
    import pycuda.driver  # noqa: PLC0415 -- comes with it
    from pytools import prefork  # noqa: PLC0415 -- comes with PyCUDA

    forker, prefork.forker = prefork.forker, _TimedForker()
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        try:
            arguments = {"options": list(options), "arch": arch, "target": "ptx", "nvcc": str(nvcc)}
            data = pycuda.compiler.compile(text, **arguments, no_extern_c=True, cache_dir=False)
        except pycuda.driver.CompileError as error:
            raise _make_failure(error.command_line, f"{error.stdout or ''}{error.stderr or ''}") from None
        except (FileNotFoundError, UnboundLocalError):  # PyCUDA 2026.1 tries to read the missing output
            raise _make_no_output([str(nvcc), "--ptx", *options, "-arch", arch, "kernel.cu"]) from None
        finally:
            prefork.forker = forker
    return NvccOutput(data, "\n".join(str(warning.message) for warning in recorded))


class _TimedForker:
    """Replacement for the class with which pytools calls nvcc, and which has no time limit."""

    @staticmethod
    def call_capture_output(
        cmdline: Sequence[str], cwd: str | None = None, _error_on_nonzero: bool = True
    ) -> tuple[int, bytes, bytes]:
        done = run_nvcc(cmdline, cwd)
        is_silent = done.returncode != 0 and not (done.stdout or done.stderr)
        return done.returncode, done.stdout, b"exit code %d" % done.returncode if is_silent else done.stderr


def compile_with_nvcc(nvcc: Path, options: Sequence[str], arch: str, text: str) -> NvccOutput:
    """Compile CUDA C++ to PTX with nvcc. Raises CompileError with nvcc's messages."""
    # kernel.cu is PyCUDA's file name, too; nvcc may write it into its output.
    command = [str(nvcc), "--ptx", *options, "-arch", arch, "kernel.cu"]
    return _run_command(command, command, text, "kernel.ptx")


def assemble_with_ptxas(entry: str, nvcc: Path, options: Sequence[str], arch: str, text: str) -> NvccOutput:
    """Assemble the kernel `entry` of PTX to a cubin as nvcc would. Raises CompileError with the messages."""
    command = str(nvcc), "--cubin", *options, "-arch", arch, "kernel.ptx"
    ptxas_command = command if environment_options() else _find_ptxas_command(command)
    return _run_command([*ptxas_command, "-e", entry], [*command, "-e", entry], text, "kernel.cubin")


@lru_cache
def _find_ptxas_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ptxas command that nvcc's dry run of a command shows; the command itself if there are other steps.

    nvcc's own work takes a quarter of the time of a small kernel.
    """
    with tempfile.TemporaryDirectory() as folder:
        text = run_nvcc([*command, "--dryrun"], folder).stderr.decode("utf-8", "replace")
    path = re.search(r"^#\$ PATH=(.*)", text, re.MULTILINE)
    ptxas = shutil.which("ptxas", path=path and path[1])
    # The other lines are assignments, such as "#$ TOP=/usr/local/cuda".
    steps = [line for line in text.splitlines() if not re.match(r"#\$ \w+=", line)]
    # With --threads, a redirection follows the output's name.
    is_ptxas_alone = len(steps) == 1 and re.fullmatch(r'#\$ ptxas .* -o "kernel\.cubin" *', steps[0])
    return (ptxas, *shlex.split(steps[0])[2:]) if ptxas and is_ptxas_alone else command


def _run_command(command: Sequence[str], nvcc_command: Sequence[str], text: str, output: str) -> NvccOutput:
    """Return the file `output` that a command writes for `text` in an empty folder; errors show `nvcc_command`."""
    with tempfile.TemporaryDirectory() as folder:
        source = "kernel.cu" if output == "kernel.ptx" else "kernel.ptx"
        Path(folder, source).write_text(text, encoding="utf-8")
        done = run_nvcc(command, folder)
        messages = (done.stdout + done.stderr).decode("utf-8", "replace")
        if done.returncode != 0:
            raise _make_failure(nvcc_command, messages or f"exit code {done.returncode}")
        path = Path(folder, output)
        if not path.exists():
            raise _make_no_output(nvcc_command)
        return NvccOutput(path.read_bytes(), messages)


def _make_failure(command: Sequence[str], text: str) -> CompileError:
    text = _NEWER_PTX.sub(r"\g<0>; CUDA 13.\1 has it: set CUDA_TOOLKIT to that release or a newer one", text.strip())
    return CompileError(f"nvcc failed: {shlex.join(command)}\n{text}")


def _make_no_output(command: Sequence[str]) -> CompileError:
    advice = "leave out options that change or prevent the output, such as -o, or set NVCC to an NVIDIA nvcc"
    return CompileError(f"nvcc did not write its output: {shlex.join(command)}; {advice}")
