"""Generated parts of the docs are current, and hand-written pages are complete and within their limits."""

import html
import importlib
import json
import re

import pytest

from docs.figures import picture, tables
from kernelwatch.cli import main
from kernelwatch.config.project_root import ROOT
from kernelwatch.store.results import History

COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def history() -> History:
    return History(tables.MACHINE, ROOT)


def test_tables_are_current(history: History) -> None:
    text, lines = tables.PAGE.read_text(encoding="utf-8"), tables.render_page(tables.ResultTables(history))
    assert tables.replace_between_markers(text, lines) == text, "results.md is stale; run: make readme"


def test_picture_is_current(history: History) -> None:
    text = (ROOT / "docs" / "bandwidth.svg").read_text(encoding="utf-8")
    match = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    assert match is not None
    assert json.loads(html.unescape(match[1])) == picture.collect_rates(history), "stale; run: make readme"


@pytest.mark.parametrize("text", ["", tables.BEGIN, tables.END, tables.END + tables.BEGIN])
def test_missing_or_swapped_markers_are_an_error(text: str) -> None:
    with pytest.raises(LookupError, match="lacks the markers"):
        tables.replace_between_markers(text, ["new"])


def test_text_outside_markers_stays() -> None:
    text = f"before {tables.BEGIN} old {tables.END} after"
    assert tables.replace_between_markers(text, ["new"]) == f"before {tables.BEGIN}\n\nnew\n{tables.END} after"


def test_pages_name_dependencies_of_ptxcount() -> None:
    project = (ROOT / "ptxcount" / "pyproject.toml").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)', project.partition("\ndependencies = [")[2].partition("]")[0], re.MULTILINE)
    for page, begin in {"CONTRIBUTING.md": "| `ptxcount/` |", "ptxcount/README.md": "pip install ./ptxcount "}.items():
        lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
        (line,) = [line.lower() for line in lines if line.startswith(begin)]
        assert [name for name in names if name not in line] == []


def test_word_limits() -> None:
    for folder, most in {"README.md": 1000, "docs/*.md": 9000}.items():
        assert sum(len(page.read_text(encoding="utf-8").split()) for page in ROOT.glob(folder)) <= most, folder


def rows(text: str, heading: str) -> dict[str, str]:
    """Return the rows of the tables below a heading, by the name in the first column."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("<!--")[0]
    lines = re.findall(r"^(\| \[?`([^`]+)`.*)$", section, re.MULTILINE)
    named = {name: line for line, name in lines}
    assert len(named) == len(lines), "a name has two rows"
    return named


def modules() -> set[str]:
    """Return modules outside the library that take arguments under `python -m`."""
    sources = [path.relative_to(ROOT) for name in ("benchmarks", "experiments") for path in (ROOT / name).rglob("*.py")]
    taking = (path for path in sources if "ArgumentParser(" in (ROOT / path).read_text(encoding="utf-8"))
    return {".".join(path.with_suffix("").parts).removesuffix(".__main__") for path in taking}


def test_every_make_target_has_a_row() -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    named = rows(COMMANDS, "make")
    assert set(named) == set(phony.split())
    variables = set(re.findall(r"^([A-Z_]+) \?=", MAKEFILE, re.MULTILINE))
    for line in named.values():
        assert set(re.findall(r"`([A-Z_]+)`", line)) <= variables


def test_page_lists_modules_with_arguments() -> None:
    assert set(rows(COMMANDS, "Modules")) == {"ptxcount"} | modules()


def test_every_subcommand_has_a_row() -> None:
    lines = rows(COMMANDS, "kernelwatch")
    assert set(lines) == set(main.COMMANDS)
    assert all(f"| {summary} |" in lines[name] for name, (_, summary) in main.COMMANDS.items())


def test_functions_of_subcommands_exist() -> None:
    for place in [*(place for place, _ in main.COMMANDS.values()), *main.INTERNAL.values()]:
        module, function = place.split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_directives_stand_in_comments() -> None:
    """Sphinx's directives stand in comments: GitHub would show others as text."""
    for path in (ROOT / "docs").glob("*.md"):
        shown = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\{(program-output|eval-rst)\}|\{toctree\}\n(?!:hidden:)", shown), path.name
