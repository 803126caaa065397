"""Judges the commit that git's own bisection is at: `git bisect run kernelwatch judge METRIC`.

    git bisect start --no-checkout --first-parent BAD GOOD -- PACKAGE
    git bisect run .venv/bin/kernelwatch judge "registers KERNEL float32 -O3 sm_90"

Without --no-checkout, git would replace what judges by what it was at each commit.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import UNFORESEEN, without_traceback
from kernelwatch.project import ROOT

#: Verdict -> exit code, as `git bisect run` takes it.
CODES = {"good": 0, "bad": 1, "skip": 125}

#: What ends the bisection: anything up to 127 would be a verdict.
ABORT = 128


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Return 0: good; 1: bad; 125: it cannot be judged; 128: no commit can, and standard error says why."""
    try:
        code = _main(words, root)
    except SystemExit as error:  # argparse
        code = UNFORESEEN if error.code else 0
    return ABORT if code == UNFORESEEN else code


@without_traceback
def _main(words: Sequence[str] | None, root: Path) -> int:
    from kernelwatch.review.bisect.commits import described  # noqa: PLC0415 -- an import that fails is no verdict
    from kernelwatch.review.bisect.metric import UnknownMetricError  # noqa: PLC0415
    from kernelwatch.review.bisect.probe import PackageError  # noqa: PLC0415
    from kernelwatch.review.bisect.search import Ends  # noqa: PLC0415
    from kernelwatch.review.commits import CannotCompareError  # noqa: PLC0415
    from kernelwatch.store import git  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        description="Judge the commit that git bisect is at, between its first GOOD and its first BAD.",
        epilog="exit codes, as git bisect run takes them: 0 good, 1 bad, 125 cannot tell, 128 stop",
    )
    parser.add_argument("metric", metavar="METRIC", help="words of one configuration, as of the command bisect")
    parser.add_argument("--machine", help="whose times count (default: this one, or the only one that has both)")
    options = parser.parse_args(words)
    try:
        log = git.text(root, "bisect", "log")
        good, bad = (_first(each, log) for each in ("good", "bad"))
        with tempfile.TemporaryDirectory(prefix="judge-") as scratch:
            ends = Ends(options.metric, good, bad, options.machine, root, Path(scratch), lambda _: None)
            if len(ends.wanted) > 1:
                raise UnknownMetricError(f"METRIC means {len(ends.wanted)} configurations; give the whole name of one")
            judge, reason = ends.judge()
            if judge is None:
                raise CannotCompareError(f"{good[:8]} and {bad[:8]} do not differ: {reason}")
            (commit,) = described([git.text(root, "rev-parse", "--verify", "BISECT_HEAD")], root)
            step = judge.step(commit)
    except git.GitError as error:
        print(f"cannot judge: {error}; begin with git bisect start --no-checkout", file=sys.stderr)
        return UNFORESEEN
    except (UnknownMetricError, CannotCompareError, PackageError) as error:
        print(f"cannot judge: {error}", file=sys.stderr)
        return UNFORESEEN
    print(f"{step.verdict}: {'' if step.value is None else f'{step.value:g}, '}{step.source} {step.reason}".rstrip())
    return CODES[step.verdict]


def _first(side: str, log: str) -> str:
    """Return the first commit that git's log calls good or bad: between these two, each is judged."""
    found = re.search(rf"^# {side}: \[(\w+)\]", log, re.MULTILINE)
    if found is None:
        from kernelwatch.review.commits import CannotCompareError  # noqa: PLC0415

        raise CannotCompareError(f"git bisect was told no {side} commit")
    return found[1]
