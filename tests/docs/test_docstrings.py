"""First words of docstrings and `#:` comments."""

import re

import pytest

from kernelwatch.config.project_root import ROOT

FOLDERS = ("ptxcount/src", "kernelwatch/src", "benchmarks", "gpu_kernels", "experiments", "speed", "tests")
CLAUSE = r"(What|Which|Whether|Who|Whose|How|When|Where|Why)\b"


@pytest.mark.parametrize(
    ("folder", "begin"),
    [*((folder, r'^ *r?"""\s*' + CLAUSE) for folder in FOLDERS)]
    + [(folder, rf"^ *#: ({CLAUSE}|(Of|By)\b)") for folder in FOLDERS[:-1]],
)
def test_texts_do_not_begin_with_a_clause(folder: str, begin: str) -> None:
    clauses = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in [path.read_text("utf-8")]
        for match in re.finditer(begin, text, re.MULTILINE)
    ]
    assert clauses == []
