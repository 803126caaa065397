"""A repository with a kernel whose counts are pinned."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxcount.command_line import main

KERNEL = """\
namespace phys {
template <typename T>
__global__ void scale(T* out, const T* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i * STRIDE];
}
}
"""
LAUNCH = """\
[[launch]]
file = "scale.cu"
kernel = "scale<float>"
grid = 4
block = [256]
arguments = ["out=float32[1024]", "in=float32[8192]=random(1)", "n=int32:1024"]
"""
#: Findings if the kernel, pinned with stride 2, has stride 8, and if it has stride 1.
ROSE = "scale.cu:6: error: PC003 global load sectors rose from 256 to 1024 (8 to 32 per request, ideal 4)"
FELL = (
    "scale.cu:6: note: PC004 global load sectors fell from 256 to 128 (8 to 4 per request, ideal 4); "
    "run ptxcount pin to keep the lower count"
)
TWO_BLOCKS = LAUNCH.replace("= 4", "= 2")


class Repository:
    """A folder with a kernel and its launches, where commands of ptxcount and git run."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        folder.mkdir(exist_ok=True)
        self.write_launches(LAUNCH)

    def write_kernel(self, stride: int, *edits: tuple[str, str]) -> None:
        """Write the kernel with a stride, after replacements of its text."""
        text = KERNEL
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "scale.cu").write_text(f"#define STRIDE {stride}\n{text}")

    def write_launches(self, text: str) -> None:
        (self.folder / "ptxcount.toml").write_text(text)

    def edit_lock(self, old: str, new: str) -> None:
        file = self.folder / "ptxcount.lock"
        file.write_text(file.read_text().replace(old, new))

    def git(self, *words: str) -> str:
        who = [word for name in ("name", "email") for word in ("-c", f"user.{name}=somebody")]
        done = subprocess.run(["git", *who, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def run(self, command: str, *words: str) -> tuple[int, list[str]]:
        """Run a command in the folder; return its exit code and its lines, except "N launches passed"."""
        previous = Path.cwd()
        os.chdir(self.folder)
        try:
            code = main([command, *words])
        finally:
            os.chdir(previous)
        lines = self._capsys.readouterr().out.splitlines()
        return code, [line for line in lines if not line.endswith((" launch passed", " launches passed"))]


#: A change of a repository; the functions below make some.
Change = Callable[[Repository], object]


def kernel(stride: int, *edits: tuple[str, str]) -> Change:
    return lambda repository: repository.write_kernel(stride, *edits)


def launch(text: str) -> Change:
    return lambda repository: repository.write_launches(text)


def lock(old: str, new: str) -> Change:
    return lambda repository: repository.edit_lock(old, new)


def pin(*words: str) -> Change:
    return lambda repository: repository.run("pin", *words)


#: The lock file of all repositories, when it is known.
_LOCKS: list[str] = []


@pytest.fixture
def repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Repository:
    """Return a repository whose pinned kernel reads every second element."""
    pinned = Repository(tmp_path / "repository", capsys)
    pinned.write_kernel(2)
    lock_file = pinned.folder / "ptxcount.lock"
    if not _LOCKS:
        assert pinned.run("pin") == (0, ["ptxcount.lock: new: scale<float>"])
        assert pinned.run("check") == (0, [])
        _LOCKS.append(lock_file.read_text())
    lock_file.write_text(_LOCKS[0])
    return pinned
