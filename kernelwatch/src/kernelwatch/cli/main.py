"""The one command, `kernelwatch SUBCOMMAND`: its subcommands, and its end after an unexpected error."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.cli.failures import UNEXPECTED, catch_errors
from ptxcount.cli.ending import interruptible_import, run_command, scratch_folder

#: Subcommand -> its function, which is imported when it is called, and its summary.
COMMANDS = {
    "init": ("kernelwatch.cli.init:main", "begins to watch the kernels of a git repository"),
    "provide": ("kernelwatch.cli.init:provide", "lets an environment of asv import this library"),
    "run": ("kernelwatch.cli.run:run", "measures with asv, writes the website, prints a summary"),
    "measure": ("kernelwatch.cli.run:measure", "measures two commits in turns"),
    "site": ("kernelwatch.cli.site:main", "writes this project's pages of the website"),
    "summary": ("kernelwatch.cli.summary:main", "prints how HEAD compares, and what was skipped"),
    "compare": ("kernelwatch.cli.compare:compare", "reviews two measured commits"),
    "bisect": ("kernelwatch.cli.bisect:bisect", "finds the commit that moved a number"),
    "judge": ("kernelwatch.cli.bisect:judge", "judges a commit for `git bisect run`"),
    "regressions": ("kernelwatch.cli.regressions:main", "lists the stored regressions that stand, and drifts"),
    "count": ("kernelwatch.cli.count:main", "counts the memory transactions of a kernel of the suite"),
    "fleet": ("kernelwatch.cli.fleet:measure_commits", "measures commits on many GPUs"),
    "fleet-workers": ("kernelwatch.cli.fleet:run_workers", "starts a worker for each GPU of a host"),
    "pycuda-wheel": ("kernelwatch.toolchain.pycuda_wheel:install_pycuda", "installs PyCUDA, built once from source"),
}

#: Exit code that ends `git bisect run`; any other code up to 127 would be a verdict.
STOP_BISECT = 128


def main(words: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit code, or 2 for an unknown one."""
    arguments = list(sys.argv[1:] if words is None else words)
    if not arguments or arguments[0] not in COMMANDS:
        return run_command("kernelwatch", lambda: _print_help(*arguments), UNEXPECTED)
    return run_command(
        f"kernelwatch {arguments[0]}",
        lambda: _run_subcommand(*arguments),
        STOP_BISECT if arguments[0] == "judge" else UNEXPECTED,
    )


def _print_help(first: str = "", *_: str) -> int:
    is_requested = first in ("-h", "--help")
    print(_format_usage(), file=sys.stdout if is_requested else sys.stderr)
    return 0 if is_requested else 2


def _run_subcommand(name: str, *words: str) -> int:
    if str(folder := Path.cwd()) not in sys.path:
        sys.path.insert(0, str(folder))  # the suite is a package of this folder, as with `python -m`
    sys.argv = [f"kernelwatch {name}", *words]  # the command's name in argparse's usage

    def command() -> int:
        module, function = COMMANDS[name][0].split(":")
        with interruptible_import(f"kernelwatch {name}"):
            main = getattr(importlib.import_module(module), function)
        with scratch_folder("kernelwatch-"):
            return main() or 0

    command.__module__ = sys.argv[0]  # the prefix of an unexpected error's line
    try:
        code = catch_errors(command)()
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    return STOP_BISECT if (name, code) == ("judge", UNEXPECTED) else code


def _format_usage() -> str:
    lines = [f"  {name:{max(map(len, COMMANDS))}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        ["usage: kernelwatch SUBCOMMAND [ARGUMENT...]", "", *lines, "", "Each prints its own with --help."]
    )
