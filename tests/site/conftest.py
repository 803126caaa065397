"""One site for all tests, published from the repository's real results and made-up ones: once, for all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.repo import get_repo
from filelock import FileLock

from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.show.site import publisher
from tests.site import made_up

#: Gives a folder by its name, made by the first process that asks.
Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Once:
    """Make a folder that all processes share."""
    shared = tmp_path_factory.getbasetemp().parent / f"shared-{testrun_uid}"
    shared.mkdir(exist_ok=True)

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        unfinished, finished = shared / f"{name}-unfinished", shared / name
        with FileLock(shared / f"{name}.lock"):
            if not finished.exists():
                make(unfinished)
                unfinished.rename(finished)
        return finished

    return folder


@pytest.fixture(scope="session", autouse=True)
def _accepted() -> Iterator[None]:
    """What a stored commit acknowledges."""
    with mock.patch.object(acknowledged, "at", made_up.accepted_at):
        yield


@pytest.fixture(scope="session")
def stored(once: Once) -> Path:
    """The stored results, with all that runs may store beside them, and two machines more."""
    return once("stored", made_up.results) / "results"


@pytest.fixture(scope="session")
def site(checkout: None, once: Once, stored: Path) -> Path:
    """The pages of these results."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.repo, config.results_dir = str(ROOT), str(stored)

    def publish(folder: Path) -> None:
        config.html_dir = str(folder)
        publisher.write(config, get_repo(config), Benchmarks.load(config))

    return once("site", publish) / publisher.FOLDER
