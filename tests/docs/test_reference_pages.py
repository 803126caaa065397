"""The pages of reference that are written by hand: they name everything that there is, and nothing else."""

from __future__ import annotations

import importlib
import re

from kernelwatch.cli import main
from kernelwatch.config.project_root import ROOT

COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def rows(text: str, heading: str) -> dict[str, str]:
    """Return the rows of the tables below a heading: the name in the first column, and all of it."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("<!--")[0]
    names = re.findall(r"^\| \[?`([^`]+)`.*$", section, re.MULTILINE)
    assert len(names) == len(set(names)), "a name has two rows"
    return {
        name: line
        for name in names
        for line in section.splitlines()
        if line.startswith((f"| `{name}`", f"| [`{name}`"))
    }


def modules() -> set[str]:
    """Return the modules outside the library that take arguments, as `python -m` calls them."""
    sources = [path.relative_to(ROOT) for name in ("benchmarks", "experiments") for path in (ROOT / name).rglob("*.py")]
    taking = (path for path in sources if "ArgumentParser(" in (ROOT / path).read_text(encoding="utf-8"))
    return {".".join(path.with_suffix("").parts).removesuffix(".__main__") for path in taking}


def test_make() -> None:
    """Every target has its row, with variables that the Makefile knows."""
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    named = rows(COMMANDS, "make")
    assert set(named) == set(phony.split())
    variables = set(re.findall(r"^([A-Z_]+) \?=", MAKEFILE, re.MULTILINE))
    for line in named.values():
        assert set(re.findall(r"`([A-Z_]+)`", line)) <= variables


def test_modules() -> None:
    """Every module that takes arguments has its row."""
    assert set(rows(COMMANDS, "Modules")) == {"ptxcount"} | modules()


def test_subcommands() -> None:
    """Each subcommand of the help has a row with its line, and each subcommand has its function."""
    lines = rows(COMMANDS, "kernelwatch")
    assert set(lines) == set(main.COMMANDS)
    assert all(f"| {summary} |" in lines[name] for name, (_, summary) in main.COMMANDS.items())
    for place in [*(place for place, _ in main.COMMANDS.values()), *main.INTERNAL.values()]:
        module, function = place.split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_nothing_bare_in_a_checkout() -> None:
    """Directives of the site are comments: elsewhere nobody sees one instead of text."""
    for path in (ROOT / "docs").glob("*.md"):
        shown = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\{(program-output|eval-rst)\}|\{toctree\}\n(?!:hidden:)", shown), path.name
