"""`kernelwatch` in a shell: unwritable output, wrong words, Ctrl-C and unexpected exceptions."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from kernelwatch.cli import main
from kernelwatch.cli.failures import FAILED_CODE
from kernelwatch.errors import UnknownKernelError
from tests import commits

CLOSED, FULL = "standard output is closed\n", "No space left on device\n"

#: Arguments, redirection of the output, exit code (141 as for SIGPIPE: nobody reads), and the error.
OUTPUTS = [
    ("--help", "| true", 141, ""),
    ("--help", ">&-", 2, f"kernelwatch: {CLOSED}"),
    ("--help", "> /dev/full", 2, f"kernelwatch: {FULL}"),
    ("compare --help", "| true", 141, ""),
    ("compare a b", ">&-", 2, f"kernelwatch compare: {CLOSED}"),
    ("judge x", ">&-", main.STOP_BISECT, f"kernelwatch judge: {CLOSED}"),
]


@pytest.mark.parametrize(("words", "where", "code", "error"), OUTPUTS)
def test_unwritable_output_is_one_line(words: str, where: str, code: int, error: str, tmp_path: Path) -> None:
    wait = "sleep 1; " * where.startswith("|")  # the pipe is closed by then
    command = f"({wait}{sys.executable} -m kernelwatch {words}) {where}; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr, done.stdout) == (code, error, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "usage: kernelwatch [-h] [--version] SUBCOMMAND ..."),
        (["drift"], "kernelwatch: error: argument SUBCOMMAND: invalid choice: 'drift' (choose from "),
        (["--helo"], "kernelwatch: error: unrecognized arguments: --helo; put options of a subcommand after its name"),
    ],
)
def test_wrong_word_is_an_error(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(words) == 2
    assert message in (errors := capsys.readouterr().err)
    assert "judge" not in errors, "only `git bisect run` needs it"


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"kernelwatch {version('kernelwatch')}\n"


@pytest.mark.parametrize("words", ["run", "measure a b", "compare init", "bisect x", "regressions", "site", "judge x"])
def test_commands_need_a_project(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(words.split()) == (main.STOP_BISECT if words == "judge x" else 2)
    advice = "run kernelwatch init, or set KERNELWATCH_ROOT to the project's folder"
    message = f"no asv.conf.json in {tmp_path} or above; {advice}"
    assert capsys.readouterr().err == f"kernelwatch {words.partition(' ')[0]}: {message}\n"


@pytest.mark.parametrize(
    ("words", "file", "message"),
    [
        ("run", "asv.conf.json", "line 1 Unexpected "),
        ("site", "asv.conf.json", "line 1 Unexpected "),
        ("compare a", "pyproject.toml", "is not TOML: Expected '=' after a key in a key/value pair (at line 1"),
    ],
)
def test_broken_settings_are_one_line(words: str, file: str, message: str, tmp_path: Path) -> None:
    commits.begin(tmp_path)
    (tmp_path / "asv.conf.json").write_text("{}")
    (tmp_path / file).write_text("a\n:")
    command = [sys.executable, "-m", "kernelwatch", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"kernelwatch {words.partition(' ')[0]}: {tmp_path / file}: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("count", "a kernel and its arguments; dtype and nvcc's flags may be left out (default: float32 -Xptxas -O3)"),
        ("compare", "BASE and HEAD are releases of CUDA, such as 13.0.2; compare them at --commit"),
        ("fleet-workers", "without a GPU; a worker with a GPU is named by the GPU's UUID"),
    ],
)
def test_help_describes_arguments(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([command, "--help"]) == 0
    assert text in " ".join(capsys.readouterr().out.split())


def raise_error(error: BaseException) -> None:
    """Raise an error, so that a traceback ends in this function."""
    raise error


PLACE = f"(unexpected, at {__file__}:"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "kernelwatch site: interrupted\n"),
        (BrokenPipeError(), 141, ""),
        (SystemExit(3), 3, ""),
        (ValueError("no\nway \x1b[2J\ud800"), FAILED_CODE, f"kernelwatch site: ValueError: no way [2J {PLACE}"),
        (ValueError("long" * 1000), FAILED_CODE, f"kernelwatch site: ValueError: {250 * 'long'} {PLACE}"),
        (UnknownKernelError("no"), FAILED_CODE, "kernelwatch site: no\n"),
    ],
)
def test_unexpected_exception_is_one_line(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kernelwatch.cli.site.main", lambda *_: raise_error(error))
    monkeypatch.setattr("signal.signal", lambda *_: None)  # an interrupt would leave another handler
    assert main.main(["site"]) == code
    output = capsys.readouterr().err
    assert output.startswith(message)
    assert output.count("\n") == bool(message)
