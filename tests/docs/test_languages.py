"""Examples that count kernels of other tools: short, linked on the page, and run before releases, two of them in CI."""

import re
from pathlib import Path

import pytest

from kernelwatch.config.project_root import ROOT
from tests.docs import examples
from tests.docs.examples import EXAMPLES

PAGE = ROOT / "docs" / "count-other-languages.md"
#: Maximum number of an example's lines, without comments, imports and blank lines.
LINES = 8
#: A row of the page: tool, version and example.
_ROW = re.compile(r"^\| (.+) (\d+\.\S+) \|.*\(languages/(\w+\.\w+)\) \|$", re.MULTILINE)
#: The counters of 256 floats.
_COUNTS = "  load    8    32    4.00\n  store    8    32    4.00"


def test_page_links_each_example() -> None:
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert sorted(name for *_, name in rows) == [example.name for example in EXAMPLES]
    for _, version, name in rows:
        command = examples.read_commands(ROOT / "docs" / "languages" / name)[0]
        assert re.match(r"pip install '?\./ptxcount", command)
        assert f"=={version}" in command


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_are_short(example: Path) -> None:
    lines = example.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith(("# ", "import ", "from "))]) <= LINES


def test_tools_of_ci_are_pinned_as_in_examples() -> None:
    """An example is small if requirements/languages.txt has the pin of its command."""
    assert [example.stem for example in examples.find_small(EXAMPLES)] == ["count_cupy", "count_slang"]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (f"print({_COUNTS!r})", ""),
        (f"print({_COUNTS!r}.replace('32', '33'))", r"are \['33', '33'\], not 32 and 32"),
        ("", r"are \[\], not 32 and 32"),
        ("import no_such_tool", "ModuleNotFoundError: No module named 'no_such_tool'"),
    ],
)
def test_missing_tools_and_wrong_counts_fail(
    code: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = tmp_path / "count_stand_in.py"
    example.write_text(f"# pip install cupy-cuda13x==14.2.0\n{code}\n", encoding="utf-8")
    monkeypatch.setattr(examples, "EXAMPLES", [example])
    assert examples.main(["--packages", str(tmp_path)]) == bool(problem)
    assert re.search(problem or "count_stand_in: ok", capsys.readouterr().out)
