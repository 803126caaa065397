"""Subjects of docstrings and comments."""

from __future__ import annotations

import ast
import re

import pytest

from kernelwatch.config.project_root import ROOT

FOLDERS = ("ptxcount/src", "kernelwatch/src", "benchmarks", "gpu_kernels", "experiments", "speed", "tests")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_with_a_clause(folder: str) -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    clauses = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, documented) and (text := ast.get_docstring(node))
        if re.match(r"(What|Which|Whether|Who|Whose|How|When|Where|Why)\b", text)
    ]
    assert clauses == []


@pytest.mark.parametrize("folder", FOLDERS[:-1])
def test_no_comment_begins_with_a_clause(folder: str) -> None:
    clauses = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.match(r"\s*#: (What|Which|Whether|Who|Whose|How|When|Where|Why|Of|By)\b", line)
    ]
    assert clauses == []
