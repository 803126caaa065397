"""What the README shows is what comes out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxcount.command_line import main

README = (Path(__file__).parents[2] / "ptxcount" / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def particles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's source, in the folder where its commands run."""
    (tmp_path / "particles.cu").write_text(_blocks("cuda")[0])
    monkeypatch.chdir(tmp_path)


def _shown(block: str) -> Iterator[str]:
    """The lines of an output as patterns, of which ``...`` stands for what is left out."""
    for line in block.splitlines():
        if line != "...":
            yield ".*".join(re.escape(part) for part in line.split("..."))


@pytest.mark.parametrize("block", _blocks("console"))
def test_commands(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line shown is printed, in this order."""
    command, output = block.split("\n", 1)
    name, *words = shlex.split(command.removeprefix("$ "))
    assert name == "ptxcount"
    failed = main(words)
    captured = capsys.readouterr()
    printed = iter((captured.err if failed else captured.out).splitlines())
    for pattern in _shown(output):
        assert any(re.fullmatch(pattern, line) for line in printed), pattern


def test_python() -> None:
    """The example prints what stands below it."""
    example, output = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)[0]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue() == output
