"""Run the examples of docs/languages: ``python -m tests.docs.examples [NAME ...]``, or ``make test-languages``.

Each example gets an environment of its own, made by the command in its first line. With ``--packages FOLDER``, only the
examples of requirements/languages.txt run, in this Python with the packages of that folder.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.config.project_root import ROOT

EXAMPLES = sorted((ROOT / "docs" / "languages").iterdir())
#: Tools that CI installs.
SMALL = ROOT / "requirements" / "languages.txt"
#: Rows of the counters of global memory in sectors.
_SECTORS = re.compile(r"^  (?:load|store) +\d+ +(\d+) ", re.MULTILINE)


def read_commands(example: Path) -> list[str]:
    """Return the commands in an example's first lines: what installs its tool and, unless it is Python, runs it."""
    lines = example.read_text(encoding="utf-8").splitlines()
    commands = [line.removeprefix("# ") for line in lines[: 1 if example.suffix == ".py" else 2]]
    return commands if len(commands) > 1 else [*commands, f"python {example.name}"]


def find_small(examples: Sequence[Path]) -> list[Path]:
    """Return the examples whose tool is in requirements/languages.txt."""
    pins = [line for line in SMALL.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [example for example in examples if {*pins} & {*shlex.split(read_commands(example)[0])}]


def run_example(example: Path, folder: Path, variables: dict[str, str]) -> str:
    """Run an example in a folder; return "", or what is wrong: 256 floats take 32 sectors of loads and of stores."""
    shutil.copy(example, folder)
    words = ["sh", "-c", read_commands(example)[1]]
    done = subprocess.run(words, cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        return done.stderr or done.stdout or f"exit code {done.returncode}"
    sectors = _SECTORS.findall(done.stdout)[:2]
    return "" if sectors == ["32", "32"] else f"sectors of loads and stores are {sectors}, not 32 and 32"


def make_environment(example: Path, folder: Path) -> dict[str, str]:
    """Make an environment with an example's tool; return the variables that select it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    variables = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PIP_QUIET": "1"}
    subprocess.run(["sh", "-c", read_commands(example)[0]], cwd=ROOT, env=os.environ | variables, check=True)
    return variables


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.examples", description="run examples of docs/languages")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *(example.stem for example in EXAMPLES)])
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="run those of requirements/languages.txt")
    options = parser.parse_args(words)
    examples = [example for example in EXAMPLES if example.stem in (options.names or [example.stem])]
    failed = 0
    for example in examples if options.packages is None else find_small(examples):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "run")
            folder.mkdir()
            if options.packages is None:
                variables = make_environment(example, Path(name, "environment"))
            else:
                python = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
                variables = {"PATH": python, "PYTHONPATH": str(options.packages.resolve())}
            problem = run_example(example, folder, variables)
        print(f"{example.stem}: {problem or 'ok'}", flush=True)
        failed += bool(problem)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
