"""Sites published from the repository's real results, each once a session, whatever the number of its processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
from asv.commands.publish import Publish
from asv.config import Config
from filelock import FileLock

from kernelwatch.project import ROOT
from kernelwatch.show.site import publisher
from kernelwatch.store import noise, record
from kernelwatch.store.record import CUBINS_FILE as CUBINS
from tests.site import made_up

#: A name that would run a script wherever it were taken for markup. A folder bears it: no slash.
HOSTILE = '"><img src=x onerror="window.attacked=1">'


@pytest.fixture(scope="session")
def publish(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Callable[[str, Path], Path]:
    """Publish a folder of results under a name; the site's folder. Publishing takes longer than most tests."""
    publisher.setup()
    shared = tmp_path_factory.getbasetemp().parent / f"sites-{testrun_uid}"
    shared.mkdir(exist_ok=True)

    def to_folder(name: str, results: Path) -> Path:
        config = Config.load(str(ROOT / "asv.conf.json"))
        config.repo = str(ROOT)
        config.branches = ["HEAD"]  # a checkout of CI has no other
        config.results_dir = str(results)
        unfinished, finished = shared / f"{name}-unfinished", shared / name
        config.html_dir = str(unfinished)
        with FileLock(shared / f"{name}.lock"):
            if not finished.exists():
                Publish.run(config, pull=False)
                unfinished.rename(finished)
        return finished

    return to_folder


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored results, with all that runs may store beside them."""
    return made_up.results(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="session")
def site(publish: Callable[[str, Path], Path], stored: Path) -> Path:
    """The site of the stored results."""
    return publish("stored", stored)


@pytest.fixture(scope="session")
def bare_site(publish: Callable[[str, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of results without anything beside them, and of a machine that ran one benchmark."""
    results = made_up.bare(tmp_path_factory.mktemp("bare"))
    made_up.partial(results)
    return publish("bare", results)


@pytest.fixture(scope="session")
def hostile_site(publish: Callable[[str, Path], Path], stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a machine whose every text is hostile, and of nothing else; nobody has left any of it out."""
    results = tmp_path_factory.mktemp("hostile") / "results"
    folder = made_up.renamed(stored / "nvidia-h200", results / HOSTILE)
    described = json.loads((stored / "benchmarks.json").read_text(encoding="utf-8"))
    for benchmark in described.values():
        if isinstance(benchmark, dict):
            benchmark["pretty_name"] = HOSTILE
            benchmark["unit"] = HOSTILE if benchmark["type"] == "track" else benchmark["unit"]
    (results / "benchmarks.json").write_text(json.dumps(described), encoding="utf-8")
    texts = {made_up.OLD: HOSTILE, "sm_80": HOSTILE, "580.159.04": HOSTILE, made_up.NOISE[0][0]: f"{HOSTILE}(x)"}
    for name in (CUBINS, noise.FILE, record.FILE):
        text = (folder / name).read_text(encoding="utf-8")
        for plain, hostile in texts.items():
            text = text.replace(json.dumps(plain), json.dumps(hostile))
        (folder / name).write_text(text, encoding="utf-8")
    with mock.patch.object(publisher, "readable", nullcontext):
        return publish("hostile", results)
