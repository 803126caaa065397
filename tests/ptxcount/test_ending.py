"""Commands that a signal ends; `test_command_line` covers unwritable outputs."""

import signal
from pathlib import Path

import pytest

from tests.ptxcount.endings import NVCC, end_process
from tests.ptxcount.gate_repository import LAUNCH

#: A NumPy whose import takes a minute.
NUMPY = """import os, pathlib, time
pathlib.Path(os.environ["FOLDER"], "begun").touch()
time.sleep(60)
"""
#: Signal -> exit code and standard error of the command that it ends.
ENDS = {signal.SIGINT: (130, "ptxcount: interrupted\n"), signal.SIGTERM: (143, "")}


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("words", [["check"], ["pin"], ["init", "scale.cu"], ["scale.cu"]], ids="-".join)
def test_signal_ends_a_command_at_once(words: list[str], number: signal.Signals, tmp_path: Path) -> None:
    assert _end_command(words, {}, number, tmp_path) == (ENDS[number][0], "", ENDS[number][1])
    assert not list((tmp_path / "temporary").iterdir())  # where nvcc had a file


def test_interrupted_import_is_one_line(tmp_path: Path) -> None:
    assert _end_command(["scale.cu"], {"numpy.py": NUMPY}, signal.SIGINT, tmp_path) == (130, "", ENDS[signal.SIGINT][1])


def _end_command(words: list[str], files: dict[str, str], number: signal.Signals, folder: Path) -> tuple[int, str, str]:
    """Send a signal to a command while nvcc or an import keeps it waiting; return exit code and outputs."""
    for name, text in {"scale.cu": "", "ptxcount.toml": LAUNCH, "nvcc": NVCC, **files}.items():
        (folder / name).write_text(text)
    (folder / "nvcc").chmod(0o755)
    (folder / "temporary").mkdir()
    return end_process(["ptxcount", *words], number, folder, folder)
