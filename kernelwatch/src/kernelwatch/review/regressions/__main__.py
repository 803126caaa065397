"""The command: `kernelwatch regressions`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelwatch.command import one_line, without_traceback
from kernelwatch.project import ROOT
from kernelwatch.review.consecutive import consecutive
from kernelwatch.review.regressions import culprits, markdown
from kernelwatch.review.regressions.standing import standing
from kernelwatch.store.results import History, machines


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the text of the issue, or the culprits as JSON; return 0, or 2 where the results cannot be read."""
    parser = argparse.ArgumentParser(
        description="Say which regressions of the stored history stand, as the text of an issue.",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--search", action="store_true", help="search the commits that brought them; print JSON")
    either.add_argument("--culprits", type=Path, metavar="FILE", help="what --search printed")
    options = parser.parse_args(words)
    try:
        known = culprits.read(options.culprits) if options.culprits else culprits.Culprits([])
        histories = [History(name, root) for name in machines(root / "results")]
    except (OSError, ValueError) as error:
        print(f"cannot tell regressions: {one_line(error)}", file=sys.stderr)
        return 2
    found = [each for one in histories for each in standing(one.machine, consecutive(one))]
    if options.search:
        print(msgspec.json.encode(culprits.search(found, root)).decode())
    else:
        sys.stdout.write(markdown.render(found, known, root))
    return 0
