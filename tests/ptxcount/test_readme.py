"""Commands and outputs in the README of ptxcount."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxcount.command_line import main

README = (Path(__file__).parents[2] / "ptxcount" / "README.md").read_text(encoding="utf-8")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


#: Blocks of a command and its output; tests/docs/test_commands.py runs those of the repository's README.
COMMANDS = [block for block in _blocks(README, "console") if "ptxcount " in block.split("\n", 1)[0]]


def _make_patterns(block: str) -> Iterator[str]:
    """Turn lines of an output into patterns; ``...`` stands for omitted text."""
    for line in block.splitlines():
        if line != "...":
            yield ".*".join(re.escape(part) for part in line.split("..."))


@pytest.mark.parametrize("block", COMMANDS)
def test_commands_print_their_output(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "particles.cu").write_text(_blocks(README, "cuda")[0])
    monkeypatch.chdir(tmp_path)
    command, output = block.split("\n", 1)
    name, *words = shlex.split(command.removeprefix("$ "))
    assert Path(name).name == "ptxcount"
    failed = main(words)
    captured = capsys.readouterr()
    printed = iter((captured.err if failed else captured.out).splitlines())
    for pattern in _make_patterns(output):
        assert any(re.fullmatch(pattern, line) for line in printed), pattern


def test_python_example_prints_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "particles.cu").write_text(_blocks(README, "cuda")[0])
    monkeypatch.chdir(tmp_path)
    example, output = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)[0]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue() == output
