"""The one command, `kernelwatch SUBCOMMAND`: what there is to call, and how it ends after an unexpected error."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.cli.failures import UNFORESEEN, without_traceback
from ptxcount.cli.ending import interruptible_import, run_command, scratch_folder

#: The subcommands: the function of each, which is imported when it is called, and what it does.
COMMANDS = {
    "init": ("kernelwatch.cli.init:main", "begins to watch the kernels of a git repository"),
    "provide": ("kernelwatch.cli.init:provide", "lets an environment of asv import this library"),
    "run": ("kernelwatch.cli.run:run", "measures with asv, writes the website, prints a summary"),
    "measure": ("kernelwatch.cli.run:measure", "measures two commits in turns"),
    "site": ("kernelwatch.show.site.publisher:main", "writes this project's pages of the website"),
    "summary": ("kernelwatch.show.summary:main", "prints how HEAD compares, and what was skipped"),
    "compare": ("kernelwatch.show.commands:compare", "reviews two measured commits"),
    "bisect": ("kernelwatch.show.bisect:bisect", "finds the commit that moved a number"),
    "judge": ("kernelwatch.show.bisect:judge", "judges a commit for `git bisect run`"),
    "regressions": ("kernelwatch.show.regressions:main", "says which stored regressions stand, and what drifts"),
    "count": ("kernelwatch.cli.count:main", "counts the memory transactions of a kernel of the suite"),
    "fleet": ("kernelwatch.cli.fleet:main", "measures commits on many GPUs"),
    "fleet-workers": ("kernelwatch.cli.fleet:serve", "starts a worker for each GPU of a host"),
    "pycuda-wheel": ("kernelwatch.toolchain.pycuda_wheel:install", "installs PyCUDA, built once from source"),
}

#: What ends `git bisect run`: of its judge, any other code up to 127 would be a verdict.
STOP = 128


def main(words: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit code, or 2 where there is none of that name."""
    given = list(sys.argv[1:] if words is None else words)
    if not given or given[0] not in COMMANDS:
        return run_command("kernelwatch", lambda: _help(*given), UNFORESEEN)
    return run_command(f"kernelwatch {given[0]}", lambda: _run(*given), STOP if given[0] == "judge" else UNFORESEEN)


def _help(first: str = "", *_: str) -> int:
    is_asked = first in ("-h", "--help")
    print(_usage(), file=sys.stdout if is_asked else sys.stderr)
    return 0 if is_asked else 2


def _run(name: str, *words: str) -> int:
    if str(here := Path.cwd()) not in sys.path:
        sys.path.insert(0, str(here))  # the suite is a package of the folder, as with `python -m`
    sys.argv = [f"kernelwatch {name}", *words]  # what argparse calls the command in its usage

    def command() -> int:
        module, function = COMMANDS[name][0].split(":")
        with interruptible_import(f"kernelwatch {name}"):
            main = getattr(importlib.import_module(module), function)
        with scratch_folder("kernelwatch-"):
            return main() or 0

    command.__module__ = sys.argv[0]  # what an unexpected error's line begins with
    try:
        code = without_traceback(command)()
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    return STOP if (name, code) == ("judge", UNFORESEEN) else code


def _usage() -> str:
    lines = [f"  {name:{max(map(len, COMMANDS))}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        ["usage: kernelwatch SUBCOMMAND [ARGUMENT...]", "", *lines, "", "Each prints its own with --help."]
    )
