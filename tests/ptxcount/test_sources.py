"""Kinds of sources by content: PTX of any name, binaries, endless files."""

import os
from pathlib import Path

import pytest

from ptxcount.command_line import main
from ptxcount.source.kernel_sources import is_ptx
from tests.ptxcount.commands import read_output
from tests.ptxcount.snippets import module

ONE = ["--grid", "1", "--block", "1", "out=int32[1]"]
PTX = module("ld.param.u64 %rd1, [p0]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;", 1)


@pytest.mark.parametrize(("text", "expected"), [
    (PTX, True), ("// made by a tool\n/* of\nits own */ " + PTX, True), (PTX.removeprefix(".version 8.0\n"), True),
    (PTX.replace(".version", ".directive"), True), ("\ufeff" + PTX, True), ("", False),
    ('#include "more.h"\n__global__ void one(int* out) { *out = 7; }', False),
    ("// .version 8.0\n__global__ void one(int* out) { *out = 7; }", False),
])  # fmt: skip
def test_ptx_is_recognized_by_content(text: str, expected: bool, tmp_path: Path) -> None:
    file = tmp_path / "kernel.txt"
    file.write_text(text, encoding="utf-8")
    assert (is_ptx(text), is_ptx(file)) == (expected, expected)


@pytest.mark.parametrize("name", ["closing.ptx", "closing.txt"])
def test_trailing_nul_is_ignored(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(PTX + "\0")
    assert "5.0 PTX instructions each" in read_output(capsys, tmp_path / name, *ONE)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("kernel.cubin", b"\x7fELF\x02\x01\x01\x33", "is an object file without embedded PTX"),
    ("kernel.cu", b"\x7fELF\x02\x01\x01\x33", "is an object file without embedded PTX"),
    ("kernel.fatbin", b"\x50\xed\x55\xba\x01\x00", "is a fatbin, not a source"),
    ("kernel.cu", None, "is a named pipe (FIFO); give a regular file"),
    ("kernel.ptx", None, "is a named pipe (FIFO); give a regular file"),
    ("/dev/zero", b"", "is a device; give a regular file"),
])  # fmt: skip
def test_foreign_files_are_refused(
    name: str, content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    if content is None:
        os.mkfifo(file)
    elif content:
        file.write_bytes(content)
    assert main([str(file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"LaunchError: {file} {message}")


def test_lines_in_allowed_folders_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "kernel.py").write_text("import it\nout[0] = 7\n")
    text = PTX.replace("mov", "\n.loc 1 2 0\nmov") + f'.file 1 "{tmp_path / "kernel.py"}"\n'
    (tmp_path / "kernel.ptx").write_text(text)
    for folder, options, is_shown in ((".", [], True), ("b", [], False), ("b", ["--source", ".."], True)):
        monkeypatch.chdir(tmp_path / folder)
        out = read_output(capsys, tmp_path / "kernel.ptx", *ONE, *options)
        assert ("    2  out[0] = 7" in out, "kernel.py:" in out) == (is_shown, True)
