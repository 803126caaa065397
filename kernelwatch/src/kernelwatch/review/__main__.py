"""The command: `kernelwatch compare BASE HEAD`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import without_traceback
from kernelwatch.project import ROOT


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; return its exit code, which is 2 whatever goes wrong."""
    from kernelwatch.review import command  # noqa: PLC0415 -- an import that fails is no verdict either

    return command.main(words, root)
