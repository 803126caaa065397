"""The hashes of machine code beside the results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from report.cubins import Cubins
from runner.record import CUBINS_FILE

NAME = "offset_copy float32 -Xptxas -O3"


def _written(folder: Path, *entries: tuple[str, str, dict[str, str]]) -> Cubins:
    lines = [json.dumps({"commit": commit, "arch": arch, "cubins": cubins}) for commit, arch, cubins in entries]
    (folder / CUBINS_FILE).write_text("\n".join([*lines, ""]))
    return Cubins(folder)


def test_later_lines_override_single_names(tmp_path: Path) -> None:
    """What a later run of the same commit and architecture compiled anew counts; old names are read as well."""
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


def test_no_file(tmp_path: Path) -> None:
    """A machine whose runs stored none has none."""
    assert Cubins(tmp_path).archs() == []


@pytest.mark.parametrize("line", ["{", "[]", "{}", "1", '{"commit": "a", "arch": "sm_90", "cubins": ["x"]}'])
def test_bad_line(line: str, tmp_path: Path) -> None:
    """A line that is not understood is named, not skipped."""
    (tmp_path / CUBINS_FILE).write_text("\n" + line)
    with pytest.raises(ValueError, match=r"cubins\.jsonl, line 2: (not of the form|is not JSON)"):
        Cubins(tmp_path)
