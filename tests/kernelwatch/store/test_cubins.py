"""Stored hashes of machine code."""

from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.record import CUBINS_FILE
from tests.stored import write_lines

NAME = "offset_copy float32 -Xptxas -O3"


def _line(commit: str, arch: str, cubins: str | dict[str, str], **fields: Any) -> dict[str, Any]:
    """Return a line of cubins.jsonl. A string is the hash of kernel NAME."""
    return {"commit": commit, "arch": arch, "cubins": {NAME: cubins} if isinstance(cubins, str) else cubins, **fields}


def test_later_lines_override_single_names(tmp_path: Path) -> None:
    """A line leaves the hashes and blocks of names that it lacks. In old lines, commas separate the parts of a name."""
    old = {"offset_copy, float32, -Xptxas -O3": "11", "other, int8, -O": "22"}
    blocks = {"offset_copy float32": [32, 0], "other int8": [64, 8]}
    lines = [_line("a", "sm_90", old, blocks=blocks), _line("a", "sm_80", "33")]
    lines += [_line("a", "sm_90", "44", blocks={"offset_copy float32": [128, 0]})]
    hashes = CubinHashes(write_lines(tmp_path / "m" / CUBINS_FILE, *lines))
    keys = [("a", "sm_90", NAME), ("a", "sm_90", "other int8 -O"), ("a", "sm_80", NAME), ("b", "sm_90", NAME)]
    assert [hashes.find_cubin_hash(*key) for key in keys] == ["44", "22", "33", None]
    assert [hashes.find_block_resources("a", "sm_90", *name.split()) for name in blocks] == [(128, 0), (64, 8)]
    assert hashes.archs == ["sm_80", "sm_90"]


def test_changes_of_hashes_are_listed(tmp_path: Path) -> None:
    """A commit without a hash after one with a hash is listed as None."""
    hashes = {"b": "11", "c": "11", "d": "22", "f": "22"}
    lines = [_line(commit, "sm_90", sha256) for commit, sha256 in hashes.items()]
    cubin_hashes = CubinHashes(write_lines(tmp_path / "m" / CUBINS_FILE, *lines, _line("a", "sm_80", "99")))
    assert cubin_hashes.list_hash_changes("abcdef", "sm_90") == {NAME: [(1, "11"), (3, "22"), (4, None), (5, "22")]}
    assert cubin_hashes.list_hash_changes("ab", "sm_80") == {NAME: [(0, "99"), (1, None)]}
    assert cubin_hashes.list_hash_changes("a", "sm_90") == {}


@pytest.mark.parametrize(
    ("recorded", "compiler", "hash_of_a", "hash_of_b", "archs"),
    [
        (None, None, "22", "55", ["sm_90", "sm_80"]),
        ("13.0.88", None, "22", "55", ["sm_90", "sm_80"]),
        ("13.5.37", None, None, "55", ["sm_90"]),
        ("13.5.37", "13.5.0", "22", "33", ["sm_80", "sm_90"]),
    ],
)
def test_hashes_of_another_machine_come_second(
    recorded: str | None, compiler: str | None, hash_of_a: str | None, hash_of_b: str, archs: list[str], tmp_path: Path
) -> None:
    """Only hashes by the chosen compiler are read, by default CUDA 13.0. For b, the machine's own, 55, precedes 33."""
    named = {} if recorded is None else {"nvcc": recorded}
    other_lines = [_line("a", "sm_90", "22"), _line("b", "sm_90", "33"), _line("b", "sm_80", "44")]
    write_lines(tmp_path / "here" / CUBINS_FILE, _line("b", "sm_90", "55"))  # by the default compiler
    write_lines(tmp_path / "there" / CUBINS_FILE, *(line | named for line in other_lines))
    cubins = CubinHashes(tmp_path / "here", compiler)
    assert [cubins.find_cubin_hash(commit, "sm_90", NAME) for commit in "ab"] == [hash_of_a, hash_of_b]
    assert cubins.archs == archs


@pytest.mark.parametrize(
    ("compiler", "sha256", "code", "archs"),
    [
        (None, "33", "dd", ["sm_90"]),
        ("13.5.0", "22", "ee", ["sm_90"]),
        ("12.8.93", None, None, ["sm_80"]),
        ("13.1.0", None, None, []),
    ],
)
def test_each_compiler_has_its_hashes(
    compiler: str | None, sha256: str | None, code: str | None, archs: Any, tmp_path: Path
) -> None:
    """Lines without nvcc belong to the default compiler."""
    lines = [
        _line("a", "sm_90", "11"),
        _line("a", "sm_90", "22", nvcc="13.5.37", code={NAME: "ee"}),
        _line("a", "sm_90", "33", nvcc="13.0.88", code={NAME: "dd"}),
        _line("a", "sm_80", "44", nvcc="12.8.93"),
    ]
    hashes = CubinHashes(write_lines(tmp_path / "m" / CUBINS_FILE, *lines), compiler)
    assert (hashes.find_cubin_hash("a", "sm_90", NAME), hashes.find_code_hash("a", "sm_90", NAME)) == (sha256, code)
    assert hashes.archs == archs


@pytest.mark.parametrize("name", ["", "a b c", "a b=c", "a b=1 b=2"])
@pytest.mark.parametrize("hashes", ["cubins", "code"])
def test_invalid_names_are_left_out(hashes: str, name: str, tmp_path: Path) -> None:
    line = _line("a", "sm_90", "11", code={NAME: "ee"})
    line[hashes] |= {name: "22"}
    cubin_hashes = CubinHashes(write_lines(tmp_path / "m" / CUBINS_FILE, line))
    assert cubin_hashes.list_hash_changes("a", "sm_90") == {NAME: [(0, "11")]}
    assert [cubin_hashes.find_code_hash("a", "sm_90", launch) for launch in (NAME, name)] == ["ee", None]
