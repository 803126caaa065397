"""Damaged files give exit code 2, or 1 for a regression that they do not hide. The errors name the files."""

from pathlib import Path

import pytest

from kernelwatch.cli import compare as commands
from kernelwatch.cli.failures import catch_errors
from tests.stored import BASE, HEAD, pair, samples, write

compare = catch_errors(commands.compare)

RESULT = f"gpu/{HEAD[:8]}-python3.11.json"

#: File, content, exit code of `compare`, and error. Records have no times, so the regression is found without them.
DAMAGED: list[tuple[str, bytes, int, str]] = [
    (RESULT, b"null", 2, "left out: {file}: Expected `object`, got `null`"),
    (RESULT, b"[" * 100_000, 2, "left out: {file}: is not JSON: maximum recursion"),
    ("benchmarks.json", b'{"version": 2, "x": {"params": 5}}', 2, "{unreadable}: Expected `array`, got `int`"),
    ("benchmarks.json", b'{"version": 1}', 2,
     "{unreadable}: has version 1, not 2; to write it, run: asv run --bench just-discover"),
    ("benchmarks.json", b"{", 2, "{unreadable}: is not JSON: Expecting property name enclosed in double quotes"),
    ("benchmarks.json", b"[" * 100_000, 2, "{unreadable}: is not JSON: maximum recursion"),
    ("benchmarks.json",
     b'{"version": 2, "x": {"name": "x", "type": "time", "params": [["1"], ["2"]], "param_names": ["n"]}}', 2,
     "{unreadable}: x has 2 params and 1 param_names"),
    ("../asv.conf.json", b'{"repo": ".", "branches": []}', 2, "{unreadable}: branches is empty; name a branch"),
    ("../asv.conf.json", b"[" * 100_000, 2, "{unreadable}: maximum recursion"),
    ("../asv.conf.json", b'{"repo": ".", "branches": "main"}', 2, "{unreadable}: Expected `array`, got `str`"),
    ("../asv.conf.json", b'{"branches": ["main"} // of git', 2, "{unreadable}: "),
    ("gpu/runs.jsonl", b'{"commits": 7, "run": "%s"}\n' % HEAD.encode(), 1,
     "left out: {file}, line 1: Expected `array`, got `int`"),
    ("gpu/runs.jsonl", b'{"commits": ["\x1b[2J"]', 1, "left out: {file}, line 1: "),
    ("gpu/cubins.jsonl", b'{"%s": 4}\n' % HEAD.encode(), 1, "left out: {file}, line 1: "),
    ("gpu/cubins.jsonl", b"[]\n", 1, "left out: {file}, line 1: "),
]  # fmt: skip


@pytest.mark.parametrize(("file", "content", "code", "line"), DAMAGED)
def test_damaged_file_hides_no_regression(
    file: str, content: bytes, code: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A regression still gives 1, or `compare` gives 2. The error names the file."""
    write(tmp_path, pair(base=samples(1.0), head=samples(2.0)))
    assert compare([BASE, HEAD], tmp_path) == 1
    capsys.readouterr()
    (tmp_path / "results" / file).write_bytes(content)
    assert compare([BASE, HEAD], tmp_path) == code
    messages = capsys.readouterr().err.splitlines()
    assert messages[0].isprintable()
    path = tmp_path / "results" / file
    path = path.parent.resolve() / path.name
    unreadable = f"cannot compare: {path}"
    assert messages[0].startswith(line.format(file=path, unreadable=unreadable))
    assert len(messages) == 1 + (file == RESULT), "without its results, HEAD cannot be compared"
