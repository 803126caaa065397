"""Commands of README and docs: run here, in a named test, or excused."""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from asv.commands.run import Run

from kernelwatch.cli.main import main as kernelwatch
from kernelwatch.config.project_root import ROOT
from kernelwatch.runner import asv_plugin
from ptxcount.command_line import main as ptxcount

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

#: A call of `make compare` with a base, a head and a machine.
COMPARE = re.compile(r"make compare BASE=(\w+) HEAD=(\w+) MACHINE=([\w-]+)")

#: Test that runs commands, or the reason why none does -> prefixes of the commands.
ELSEWHERE = {
    "tests/kernelwatch/runner/test_command.py": ("make bench",),
    "all tests": ("make test",),
    "tests/kernelwatch/review/test_compare.py": ("make compare BASE=origin/main", "kernelwatch compare"),
    "tests/kernelwatch/review/test_bisect_searches.py": ("make bisect", "git bisect"),
    "tests/site/story.py": ("make site",),
    "tests/kernelwatch/fleet/test_fleet.py": ("make fleet",),
    "tests/kernelwatch/strangers/": ("kernelwatch init", "asv run"),
    "tests/kernelwatch/test_strangers.py": ("kernelwatch site",),
    "tests/kernelwatch/review/test_regressions.py": ("kernelwatch regressions",),
    "tests/gpu_kernels/test_growth.py": (".venv/bin/kernelwatch count subtract",),
    "needs a GPU": ("make measure", "asv continuous"),
    "needs a network": ("for release in", "python3 -m venv", "pip install"),
    "is a shell's, a desktop's or cron's": ("cd YOUR", "git add", "xdg-open", "17 3 * * *"),
    "needs other hosts": (
        *("mkdir", "openssl", "-addext", "chmod", "ssh", "sbatch"),
        *(".venv/bin/python -m distributed", "--protocol"),
    ),
}


def blocks(page: Path) -> Iterator[list[str]]:
    """Yield the lines of each code block that has no language or the language `console`."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE):
        if language in ("", "console"):
            yield [line.strip() for line in block.splitlines()]


def commands() -> list[tuple[str, list[str]]]:
    examples = []
    for page in PAGES:
        for lines in blocks(page):
            if lines[0].startswith("$ "):
                examples.append((lines[0][2:], lines[1:]))
            elif not lines[0].startswith((">>", "[[", "results/")):
                examples += [(line.partition("  #")[0], []) for line in lines]
    return examples


RUN = [example for example in commands() if COMPARE.match(example[0]) or "ptxcount particles.cu" in example[0]]
RUN += [example for example in commands() if "kernelwatch count transpose" in example[0]]


@pytest.mark.history
@pytest.mark.parametrize(("command", "shown"), RUN, ids=[f"{number}" for number in range(len(RUN))])
def test_command_prints_shown_lines(
    command: str, shown: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = re.findall(r"```cuda\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "particles.cu").write_text(source, encoding="utf-8")
    compared = COMPARE.match(command)
    plain = "kernelwatch compare {} {} --machine {}".format(*compared.groups()) if compared else command
    _, *words = plain.removeprefix(".venv/bin/").split()
    main = ptxcount if "ptxcount" in plain else kernelwatch
    monkeypatch.chdir(tmp_path if main is ptxcount else ROOT)
    monkeypatch.setattr(sys, "argv", sys.argv)
    code, captured = main(words), capsys.readouterr()
    assert code == (1 if compared else 0), captured.err
    output = iter(line.strip() for line in captured.out.splitlines())
    for line in shown:
        assert line == "..." or line.startswith("⋮") or line in output, line


def test_every_command_is_run_or_excused() -> None:
    ran = {command for command, _ in RUN}
    prefixes = tuple(prefix for prefixes in ELSEWHERE.values() for prefix in prefixes)
    assert [command for command, _ in commands() if command not in ran and not command.startswith(prefixes)] == []
    assert [place for place in ELSEWHERE if place.startswith("tests/") and not (ROOT / place).exists()] == []


def test_table_lists_options_of_asv_run() -> None:
    """The runner "hands" runs with some options to asv. It "ignores" others, which its code does not name."""
    table = re.findall(r"^\| (`--.*) \| (\w+) ", (ROOT / "docs" / "run.md").read_text(encoding="utf-8"), re.MULTILINE)
    by_verb = {verb: set(re.findall(r"--([a-z-]+)", options)) for options, verb in table}
    handed = {name.replace("_", "-") for name in asv_plugin._UNSUPPORTED_OPTIONS}
    assert by_verb["hands"] == handed | {"attribute", "cpu-affinity", "environment", "python"}
    source = "".join(path.read_text(encoding="utf-8") for path in Path(asv_plugin.__file__).parent.glob("*.py"))
    assert {name for name in inspect.signature(Run.run).parameters if f'"{name}"' not in source} == by_verb["ignores"]
