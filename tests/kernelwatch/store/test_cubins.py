"""The hashes of machine code beside the results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwatch.store.cubins import Cubins, instructions
from kernelwatch.store.record import CUBINS_FILE, INSTRUCTIONS_FILE

NAME = "offset_copy float32 -Xptxas -O3"


def _written(folder: Path, *entries: tuple[str, str, dict[str, str]]) -> Cubins:
    lines = [json.dumps({"commit": commit, "arch": arch, "cubins": cubins}) for commit, arch, cubins in entries]
    (folder / CUBINS_FILE).write_text("\n".join([*lines, ""]))
    return Cubins(folder)


def test_later_lines_override_single_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a later run of the same commit and architecture compiled anew counts, and is told; old names are read."""
    found = _written(
        tmp_path,
        ("a", "sm_90", {"offset_copy, float32, -Xptxas -O3": "11", "other, int8, -O": "22"}),
        ("a", "sm_80", {NAME: "33"}),
        ("a", "sm_90", {NAME: "44"}),
    )
    assert found.sha256("a", "sm_90", NAME) == "44"
    assert found.sha256("a", "sm_90", "other int8 -O") == "22"
    assert found.sha256("a", "sm_80", NAME) == "33"
    assert found.sha256("b", "sm_90", NAME) is None
    assert found.archs() == ["sm_80", "sm_90"]
    place = f"{tmp_path / CUBINS_FILE}, line 3"
    assert capsys.readouterr().err == f"{place}: says 44 of {NAME}, sm_90, a; 11 counts no more\n"


def test_runs(tmp_path: Path) -> None:
    """A run begins where the hash differs from the commit's before; None where none is stored any more."""
    found = _written(
        tmp_path,
        *[(commit, "sm_90", {NAME: sha}) for commit, sha in (("b", "11"), ("c", "11"), ("d", "22"), ("f", "22"))],
        ("a", "sm_80", {NAME: "99"}),
    )
    assert found.runs("abcdef", "sm_90") == {NAME: [(1, "11"), (3, "22"), (4, None), (5, "22")]}
    assert found.runs("ab", "sm_80") == {NAME: [(0, "99"), (1, None)]}
    assert found.runs("a", "sm_90") == {}


@pytest.mark.parametrize(
    ("compilers", "found"),
    [
        ((["13.0"], ["13.0"]), "22"),
        ((["13.0"], ["13.1"]), None),
        ((["13.0", "13.1"], ["13.0", "13.1"]), None),
        (([], []), None),
    ],
)
def test_another_machine(compilers: tuple[list[str], list[str]], found: str | None, tmp_path: Path) -> None:
    """What a machine did not note, another tells if all runs had one compiler; its own hashes count before theirs."""
    for name, versions in zip(("here", "there"), compilers, strict=True):
        (tmp_path / name).mkdir()
        runs = [json.dumps({"nvcc": version}) for version in versions]
        (tmp_path / name / "runs.jsonl").write_text("\n".join([*runs, ""]))
    _written(
        tmp_path / "there", ("a", "sm_90", {NAME: "22"}), ("b", "sm_90", {NAME: "33"}), ("b", "sm_80", {NAME: "44"})
    )
    here = _written(tmp_path / "here", ("b", "sm_90", {NAME: "55"}))
    assert here.sha256("a", "sm_90", NAME) == found
    assert here.sha256("b", "sm_90", NAME) == "55"
    assert here.archs() == (["sm_90", "sm_80"] if found else ["sm_90"])


def test_two_compilers(tmp_path: Path) -> None:
    """Each has its own hashes; lines that name no nvcc are of the default's."""
    lines = [
        {"commit": "a", "arch": "sm_90", "cubins": {NAME: "11"}},
        {"commit": "a", "arch": "sm_90", "nvcc": "13.5.37", "cubins": {NAME: "22"}, "code": {NAME: "ee"}},
        {"commit": "a", "arch": "sm_90", "nvcc": "13.0.88", "cubins": {NAME: "33"}, "code": {NAME: "dd"}},
        {"commit": "a", "arch": "sm_80", "nvcc": "12.8.93", "cubins": {NAME: "44"}},
    ]
    (tmp_path / CUBINS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for compiler, sha256, code, archs in (
        (None, "33", "dd", ["sm_90"]),
        ("13.5.0", "22", "ee", ["sm_90"]),
        ("12.8.93", None, None, ["sm_80"]),
        ("13.1.0", None, None, []),
    ):
        found = Cubins(tmp_path, compiler)
        assert found.sha256("a", "sm_90", NAME) == sha256
        assert found.code("a", "sm_90", NAME) == code
        assert found.codes("a", "sm_90") == ({NAME: code} if code else {})
        assert found.archs() == archs


def test_another_compiler_beside_it(tmp_path: Path) -> None:
    """What other machines tell of the default stays, whichever compilers they used besides."""
    for name, versions in (("here", ["13.0.88"]), ("there", ["13.0.88", "13.5.37"])):
        (tmp_path / name).mkdir()
        runs = [json.dumps({"nvcc": f"release 13, V{version}"}) for version in versions]
        (tmp_path / name / "runs.jsonl").write_text("\n".join([*runs, ""]))
    _written(tmp_path / "there", ("a", "sm_90", {NAME: "22"}))
    assert Cubins(tmp_path / "here").sha256("a", "sm_90", NAME) == "22"
    assert Cubins(tmp_path / "here", "13.5.0").sha256("a", "sm_90", NAME) is None


def test_instructions(tmp_path: Path) -> None:
    """By the hash of the machine code; a line that is not understood is named."""
    path = tmp_path / INSTRUCTIONS_FILE
    assert instructions(tmp_path) == {}
    path.write_text('{"code": "dd", "instructions": {"integer": 3}}\n')
    assert instructions(tmp_path) == {"dd": {"integer": 3}}
    path.write_text('{"code": "dd", "instructions": 3}\n')
    with pytest.raises(ValueError, match=r"instructions\.jsonl, line 1"):
        instructions(tmp_path)


def test_instructions_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The earlier line counts, however often it comes, and the other one is named once."""
    lines = [{"code": "dd", "instructions": {"integer": count}} for count in (3, 4, 3)]
    (tmp_path / INSTRUCTIONS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert [instructions(tmp_path) for _ in "12"] == [{"dd": {"integer": 3}}] * 2
    place = f"{tmp_path / INSTRUCTIONS_FILE}, line 2"
    told = "says {'integer': 4} of dd, but known is {'integer': 3}, which counts"
    assert capsys.readouterr().err == f"{place}: {told}\n"


@pytest.mark.parametrize("name", ["", "a b c", "a b=c", "a b=1 b=2"])
@pytest.mark.parametrize("hashes", ["cubins", "code"])
def test_what_is_no_launch_is_left_out(
    hashes: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named once, however often the file is read; what stands beside it is there."""
    line = {"commit": "a", "arch": "sm_90", "cubins": {NAME: "11"}, "code": {NAME: "ee"}}
    line[hashes] |= {name: "22"}  # type: ignore[operator]
    (tmp_path / CUBINS_FILE).write_text(f"{json.dumps(line)}\n")
    for found in (Cubins(tmp_path), Cubins(tmp_path)):
        assert found.sha256("a", "sm_90", NAME) == "11"
        assert found.codes("a", "sm_90") == {NAME: "ee"}
    assert capsys.readouterr().err == f"{tmp_path / CUBINS_FILE}, line 1: {name!r} is left out: it is no launch\n"


def test_no_file(tmp_path: Path) -> None:
    """A machine whose runs stored none has none."""
    assert Cubins(tmp_path).archs() == []


@pytest.mark.parametrize("line", ["{", "[]", "{}", "1", '{"commit": "a", "arch": "sm_90", "cubins": ["x"]}'])
def test_bad_line(line: str, tmp_path: Path) -> None:
    """A line that is not understood is named, not skipped."""
    (tmp_path / CUBINS_FILE).write_text("\n" + line)
    with pytest.raises(ValueError, match=r"cubins\.jsonl, line 2: (not of the form|is not JSON)"):
        Cubins(tmp_path)
