"""The command `kernelwatch SUBCOMMAND`."""

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.cli.failures import FAILED_CODE, catch_errors
from kernelwatch.config import project_root
from ptxcount.cli.ending import interruptible_import, run_command, scratch_folder

#: Subcommand -> its function, as "module:name", which is imported when it is called; and its line in the help text.
COMMANDS = {
    "init": ("kernelwatch.cli.init:main", "start watching the kernels of a git repository"),
    "run": ("kernelwatch.cli.run:run", "measure with asv, write the website, print a summary"),
    "measure": ("kernelwatch.cli.run:measure", "measure two commits with interleaved samples"),
    "compare": ("kernelwatch.cli.compare:compare", "review two measured commits"),
    "bisect": ("kernelwatch.cli.bisect:bisect", "find the commit that changed a number"),
    "regressions": ("kernelwatch.cli.regressions:main", "list the unfixed regressions and drifts"),
    "count": ("kernelwatch.cli.count:main", "count the memory transactions of a kernel of the suite"),
    "site": ("kernelwatch.cli.site:main", "write this project's pages of the website"),
    "fleet": ("kernelwatch.cli.fleet:measure_commits", "measure commits on many GPUs"),
    "fleet-workers": ("kernelwatch.cli.fleet:run_workers", "start a worker for each GPU of a host"),
}

#: Subcommands for git, asv and make, which are not in the help text.
INTERNAL = {
    "judge": "kernelwatch.cli.bisect:judge",
    "provide": "kernelwatch.cli.provide:provide_libraries",
    "pycuda-wheel": "kernelwatch.toolchain.pycuda_wheel:install_pycuda",
}

#: Subcommand -> its function, as "module:name".
_PLACES = {name: place for name, (place, _) in COMMANDS.items()} | INTERNAL

#: Subcommands that only read results. They do not need OpenBLAS's threads, a third of NumPy's import time. Nor do they
#: need the collector of cycles: it takes 10 % of their time, and their peak memory is the same without it.
_READING = ("compare", "regressions", "site")

#: Subcommands that work without a project.
_WITHOUT_PROJECT = ("init", "fleet-workers", "provide", "pycuda-wheel")

#: Exit code that ends `git bisect run`; any other code up to 127 would be a verdict.
STOP_BISECT = 128


def main(words: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit code, or 2 for an unknown one."""
    name, *arguments = list(sys.argv[1:] if words is None else words) or [""]
    if name not in _PLACES:
        return run_command("kernelwatch", lambda: _print_help(name), FAILED_CODE)
    code = STOP_BISECT if name == "judge" else FAILED_CODE
    return run_command(f"kernelwatch {name}", lambda: _run_subcommand(name, arguments), code)


def _print_help(word: str) -> int:
    from importlib.metadata import version  # noqa: PLC0415 -- no subcommand needs it

    parser = argparse.ArgumentParser("kernelwatch", epilog="Each subcommand prints its arguments with --help.")
    parser.add_argument("--version", action="version", version=f"kernelwatch {version('kernelwatch')}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    for name, (_, summary) in COMMANDS.items():
        subparsers.add_parser(name, help=summary)
    if not word:
        parser.print_help(sys.stderr)
        return FAILED_CODE
    try:
        if word.startswith("-") and word not in ("-h", "--help", "--version"):
            parser.error(f"unrecognized arguments: {word}; put options of a subcommand after its name")
        parser.parse_args([word])
    except SystemExit as end:
        return int(end.code or 0)
    raise AssertionError(word)  # a subcommand, which `main` runs


def _run_subcommand(name: str, arguments: Sequence[str]) -> int:
    if str(folder := Path.cwd()) not in sys.path:
        sys.path.insert(0, str(folder))  # the suite is imported from this folder, as with `python -m`
    if name in _READING:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        gc.disable()
    sys.argv = [f"kernelwatch {name}", *arguments]  # the command's name in usage and error texts

    def command() -> int:
        needs_project = name not in _WITHOUT_PROJECT and {"-h", "--help"}.isdisjoint(arguments)
        project = project_root.find_project(folder)
        if needs_project and not (project and (project / project_root.CONFIG_FILE).is_file()):
            from kernelwatch.errors import KernelwatchError  # noqa: PLC0415 -- imports all of ptxcount

            advice = f"run kernelwatch init, or set {project_root.VARIABLE} to the project's folder"
            raise KernelwatchError(f"no {project_root.CONFIG_FILE} in {project or f'{folder} or above'}; {advice}")
        module, function = _PLACES[name].split(":")
        with interruptible_import(f"kernelwatch {name}"):
            main = getattr(importlib.import_module(module), function)
        with scratch_folder("kernelwatch-"):
            return main() or 0

    try:
        code = catch_errors(command)()
    except SystemExit as error:  # argparse exits after --help or an error
        code = int(error.code or 0)
    finally:
        gc.enable()
    return STOP_BISECT if (name, code) == ("judge", FAILED_CODE) else code
