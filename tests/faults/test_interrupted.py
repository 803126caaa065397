"""Signals during a compilation leave no temporary file."""

import signal
from pathlib import Path

import pytest

from kernelwatch.cli import init
from tests import commits
from tests.ptxcount.endings import NVCC, end_process

#: Arguments of `python -m` -> name of the command.
COMMANDS = {"kernelwatch init": "kernelwatch init", "asv run --record-samples HEAD^!": "asv"}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a kernel; beside it are a compiler that hangs and a folder for temporary files."""
    root = commits.begin(tmp_path / "repository")
    monkeypatch.chdir(root)
    (root / "a.cu").write_text("__global__ void scale(float* out) { out[threadIdx.x] *= 2; }")
    assert init.main([]) == 0
    commits.commit(root)
    (tmp_path / "nvcc").write_text(NVCC)
    (tmp_path / "nvcc").chmod(0o755)
    (tmp_path / "temporary").mkdir()
    return root


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", COMMANDS)
def test_signal_leaves_no_temporary_file(command: str, number: signal.Signals, repository: Path) -> None:
    """Ctrl-C prints one line, SIGTERM prints nothing."""
    folder = repository.parent
    cache = str(folder / "cache")
    code, _, errors = end_process(command.split(), number, begun=folder, folder=repository, KERNELWATCH_CACHE=cache)
    assert code in ((130, -signal.SIGINT) if number == signal.SIGINT else (143,))
    assert errors == f"{COMMANDS[command]}: interrupted\n" * (number == signal.SIGINT)
    assert not list((folder / "temporary").iterdir())
