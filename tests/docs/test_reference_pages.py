"""Hand-written reference pages name everything that exists, and nothing else."""

from __future__ import annotations

import importlib
import re

from kernelwatch.cli import main
from kernelwatch.config.project_root import ROOT

COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


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
    for place in [*(place for place, _ in main.COMMANDS.values()), *main.INTERNAL.values()]:
        module, function = place.split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_directives_stand_in_comments() -> None:
    """Sphinx's directives stand in comments: GitHub would show others as text."""
    for path in (ROOT / "docs").glob("*.md"):
        shown = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\{(program-output|eval-rst)\}|\{toctree\}\n(?!:hidden:)", shown), path.name
