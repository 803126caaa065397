"""`kernelwatch site`: write the project's pages, without asv's."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from asv.repo import get_repo

from kernelwatch.config.project_root import CONFIG_FILE, ROOT
from kernelwatch.show.site import publisher
from kernelwatch.store import asv_files, git


def main(words: Sequence[str] | None = None) -> int:
    """Write the project's pages alone, without asv's, and say where they are."""
    argparse.ArgumentParser("kernelwatch site", description=main.__doc__).parse_args(words)
    os.chdir(ROOT)  # asv's configuration names folders relative to its own
    git.text(ROOT, "rev-parse", "--git-dir")  # in an unpacked archive asv would fail, in three lines
    conf = asv_files.load_config(ROOT / CONFIG_FILE)
    print(f"Written: {publisher.write_site(conf, get_repo(conf))}/index.html")
    return 0
