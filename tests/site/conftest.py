"""Sites published from the repository's real results, each once a session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from asv.commands.publish import Publish
from asv.config import Config

from report.results import ROOT
from report.site import publisher  # noqa: F401 -- asv finds its class once it is imported

#: A name that would run a script wherever it were taken for markup. A folder bears it: no slash.
HOSTILE = '"><img src=x onerror="window.attacked=1">'


@pytest.fixture(scope="session")
def publish(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Publish a folder of results; the site's folder."""

    def to_folder(results: Path) -> Path:
        config = Config.load(str(ROOT / "asv.conf.json"))
        config.repo = str(ROOT)
        config.branches = ["HEAD"]  # a checkout of CI has no other
        config.results_dir = str(results)
        config.html_dir = str(tmp_path_factory.mktemp("site") / "html")
        Publish.run(config, pull=False)
        return Path(config.html_dir)

    return to_folder


@pytest.fixture(scope="session")
def site(publish: Callable[[Path], Path]) -> Path:
    """The site of the stored results."""
    return publish(ROOT / "results")


@pytest.fixture(scope="session")
def hostile_site(publish: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a machine with a hostile name, and of nothing else."""
    results = tmp_path_factory.mktemp("hostile") / "results"
    shutil.copytree(ROOT / "results" / "nvidia-h200", results / HOSTILE)
    shutil.copy(ROOT / "results" / "benchmarks.json", results)
    machine = results / HOSTILE / "machine.json"
    machine.write_text(json.dumps(json.loads(machine.read_text(encoding="utf-8")) | {"machine": HOSTILE}))
    for path in (results / HOSTILE).glob("*-*.json"):
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["params"]["machine"] = HOSTILE
        path.write_text(json.dumps(stored), encoding="utf-8")
    return publish(results)
