"""`kernelwatch site`: write the project's pages, without asv's pages."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.config.project_root import CONFIG_FILE, ROOT
from kernelwatch.show.site import publisher
from kernelwatch.store import asv_files, git


def main(words: Sequence[str] | None = None) -> int:
    """Write the project's pages, without asv's, and print the path of the first page."""
    argparse.ArgumentParser("kernelwatch site", description=main.__doc__).parse_args(words)
    os.chdir(ROOT)  # folders in asv's configuration are relative to its own
    git.text(ROOT, "rev-parse", "--git-dir")  # without a repository, asv would fail with three lines
    configuration = asv_files.load_configuration(ROOT / CONFIG_FILE)
    folder = publisher.write_site(configuration, _locate_repository(configuration.repo))
    print(f"Written: {folder}/index.html")
    return 0


def _locate_repository(location: str) -> Path:
    """Return the folder of a repository, or of asv's copy of a remote one."""
    if Path(location).is_dir():
        return Path(location)
    from asv.config import Config  # noqa: PLC0415 -- a third of the time that all pages take
    from asv.repo import get_repo  # noqa: PLC0415

    return Path(get_repo(Config.load(CONFIG_FILE))._path)
