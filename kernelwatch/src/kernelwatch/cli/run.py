"""`kernelwatch run` and `measure`: `asv run`, and further steps after it."""

import argparse
import itertools
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from asv import main
from asv.commands.run import Run

from kernelwatch.cli.failures import catch_errors
from kernelwatch.config.project_root import CONFIG_FILE, ROOT
from kernelwatch.instrument import machine
from kernelwatch.runner.asv_plugin import is_existing_environment
from kernelwatch.store import asv_files
from ptxcount.cli.ending import run_command

#: Git's range with HEAD as its only commit.
HEAD_ONLY = "HEAD^!"

#: Lines before the help of `asv run`: the differences of `kernelwatch run`.
_HELP = f"""\
kernelwatch run [OPTION OF asv run ...] [RANGE]: without RANGE, only HEAD is measured ({HEAD_ONLY}).
Results are stored under --machine, by default the GPU's name, or no-gpu-ARCHITECTURE. Unlike asv, --quick stores them.
Afterwards, the website is written, and a summary printed.
The help of asv run:"""


def run(words: Sequence[str] | None = None) -> int:
    """Measure, write the website, print the summary; return the exit code of `asv run`, or of a later failed step.

    `words` are arguments of `asv run`. Without a range, HEAD is measured, unless asv uses an existing environment. A
    run that is dry, interrupted or cannot begin writes no website and prints no summary.
    """
    arguments = list(sys.argv[1:] if words is None else words)
    if not {"-h", "--help"}.isdisjoint(arguments):
        print(_HELP, flush=True)
        return _run_asv("run", *arguments)
    parser = argparse.ArgumentParser("kernelwatch")
    Run.setup_arguments(parser.add_subparsers())
    parsed = parser.parse_args(["run", *arguments])
    if parsed.range is None and not any(map(is_existing_environment, parsed.env_spec)):
        arguments = [HEAD_ONLY, *arguments]
    status = _run_asv("run", "--record-samples", *arguments)
    if status not in (0, 2) or parsed.dry_run:
        return status
    from kernelwatch.cli import site, summary  # noqa: PLC0415 -- not needed while measuring

    # The review takes as long as the pages: a second process makes it meanwhile.
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        summarized = pool.submit(summary.summarize, parsed.machine or machine.default_name(machine.find_gpu()))
        site_code = catch_errors(site.main)(())
        text, summary_code = summarized.result()
    print(text, file=sys.stderr if summary_code else sys.stdout)
    return site_code or summary_code or status


def measure(words: Sequence[str] | None = None) -> int:
    """Measure two commits with interleaved samples on the same buffers; return the exit code of `asv run`."""
    parser = argparse.ArgumentParser(
        "kernelwatch measure",
        usage="%(prog)s BASE HEAD [OPTION OF asv run ...]",
        description="Measure two git revisions with interleaved samples on the same buffers.",
    )
    remaining = parser.parse_known_args(words)[1]
    revisions = list(itertools.takewhile(lambda word: not word.startswith("-"), remaining))
    if len(revisions) != 2:
        words_text = " ".join(remaining) or "nothing"
        parser.error(f"put BASE and HEAD, two git revisions, before the options of asv run; given: {words_text}")
    with tempfile.NamedTemporaryFile("w") as file:
        file.writelines(f"{revision}\n" for revision in revisions)
        file.flush()
        return _run_asv("run", "--interleave-rounds", "--record-samples", *remaining[2:], f"HASHFILE:{file.name}")


def _run_asv(*words: str) -> int:
    os.chdir(ROOT)
    if {"-h", "--help"}.isdisjoint(words):
        asv_files.load_configuration(ROOT / CONFIG_FILE)  # asv's own error does not name the file
    return run_command("asv", lambda: _call_asv(*words), 1)


def _call_asv(*words: str) -> int:
    previous, sys.argv = sys.argv, ["asv", *words]
    try:
        main.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = previous
    return 0
