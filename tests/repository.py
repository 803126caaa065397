"""A temporary repository with a copy of this project, for commands of asv."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwatch.config.project_root import ROOT
from tests.kernelwatch.strangers import Project

PARTS = ["Makefile", "asv.conf.json", "pyproject.toml", "README.md", "requirements"]
PARTS += ["benchmarks", "gpu_kernels", "ptxcount", "kernelwatch"]

SMALL_KERNELS = ("offset_copy", "stride_copy", "transpose_read_coalesced")

#: Constants of a small suite: (file, name) -> value.
SMALL_VALUES: dict[tuple[str, str], Sequence[str | int]] = {
    ("benchmarks/sweeps.py", "MATRICES"): ("256x256",),
    ("benchmarks/sweeps.py", "MATRICES_IN_L2"): ("256x256",),
    ("benchmarks/sweeps.py", "SHORT_MATRICES"): ("256x256",),
    ("benchmarks/sweeps.py", "OFFSETS"): (0,),
    ("benchmarks/sweeps.py", "STRIDES"): (1,),
    ("benchmarks/sweeps.py", "COPY_FLAG_SETS"): ("-Xptxas -O3",),
    ("benchmarks/sweeps.py", "MOVED"): ("float32",),
    ("benchmarks/sweeps.py", "FLAG_SETS"): ("-Xptxas -O3",),
    ("benchmarks/sweeps.py", "ARCHS"): ("sm_90",),
}

#: Code appended to modules of benchmarks, which removes the classes and kernels that are not in KERNELS.
_FEWER = """

def _of_few(one, kernels):
    if "kernel" not in one.param_names:
        return one if one.kernel in kernels else None
    axes = zip(one.param_names, one.params)
    few = [tuple(k for k in axis if name != "kernel" or k in kernels) for name, axis in axes]
    kept = {name: value for name, value in vars(one).items() if not name.startswith(("time_", "track_", "sweep"))}
    return type(one.__name__, one.__bases__, {**kept, "params": few}) if all(few) else None


for _one in [one for one in globals().values() if isinstance(one, type) and issubclass(one, kw.Benchmark)]:
    globals()[_one.__name__] = _of_few(_one, KERNELS)
"""


class Repository(Project):
    """A copy of this project under git, with some of its kernels, or all if `kernels` is empty."""

    def __init__(
        self,
        folder: Path,
        kernels: Sequence[str] = SMALL_KERNELS,
        values: Mapping[tuple[str, str], Sequence[str | int]] = SMALL_VALUES,
    ) -> None:
        super().__init__(folder)
        self.results = self.path / "results"
        # The copy's libraries take precedence over those installed for this checkout.
        libraries = os.pathsep.join(str(self.path / name / "src") for name in ("ptxcount", "kernelwatch"))
        config = os.environ.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))
        self.environment |= {"PYTHONPATH": libraries, "XDG_CONFIG_HOME": config}
        for part in PARTS:
            source, target = ROOT / part, self.path / part
            if source.is_dir():
                # Modification times are copied, so that the copied bytecode stays valid.
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.egg-info"))
            else:
                shutil.copy(source, target)
        (self.path / ".git" / "info" / "exclude").write_text("__pycache__/\n")
        for (file, name), value in values.items():
            self.assign(file, name, repr(value))
        if kernels:
            catalog = self.path / "gpu_kernels" / "catalog.py"
            text = catalog.read_text(encoding="utf-8")
            catalog.write_text(f"{text}\nfor _name in set(KERNELS) - {set(kernels)}:\n    del KERNELS[_name]\n")
            fewer = _FEWER.replace("KERNELS", repr({*kernels, "", "device_copy"}))
            for name in ("time_copy", "time_kernel", "time_transpose", "track_counted", "track_compiled"):
                module = self.path / "benchmarks" / f"{name}.py"
                module.write_text(module.read_text(encoding="utf-8") + fewer, encoding="utf-8")

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def assign(self, file: str, name: str, value: str) -> None:
        """Assign a value, as Python text, to a constant of a module."""
        path = self.path / file
        text = path.read_text(encoding="utf-8")
        assignments = (node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign))
        (node,) = (node for node in assignments if ast.unparse(node).startswith((f"{name} = ", f"{name}: ")))
        lines = text.splitlines(keepends=True)
        path.write_text("".join([*lines[: node.lineno - 1], f"{name} = {value}\n", *lines[node.end_lineno :]]))

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace a text that occurs once in a file."""
        path = self.path / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} holds {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m` in the repository; return the process with its output."""
        return self.run(sys.executable, "-m", *arguments)

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = ("make", "--no-print-directory", "--old-file=.venv/installed", f"BIN={Path(sys.executable).parent}")
        return self.run(*words, *arguments)

    def asv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("asv", *arguments)
